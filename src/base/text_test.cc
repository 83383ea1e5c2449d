#include "base/text.h"

#include <gtest/gtest.h>

#include <cstdint>

namespace viaduct::base {
namespace {

TEST(Text, LettersChangeAndNothingElse) {
  EXPECT_EQ(lower("AbC-1_z"), "abc-1_z");
  EXPECT_EQ(upper("AbC-1_z"), "ABC-1_Z");
  EXPECT_TRUE(sameWord("Ucx", "uCX"));
  EXPECT_FALSE(sameWord("ucx", "ucx "));
  EXPECT_FALSE(sameWord("ucx", "uc"));
}

TEST(Text, WhiteSpaceIsBetweenWords) {
  EXPECT_EQ(trimmed(" \t a b\r\n"), "a b");
  EXPECT_EQ(trimmed(" \n"), "");
  EXPECT_EQ(wordsOf("  one\ttwo \n three"), (std::vector<std::string_view>{"one", "two", "three"}));
  EXPECT_TRUE(wordsOf(" ").empty());
}

TEST(Text, EmptyPartsAreLeftOut) {
  EXPECT_EQ(partsOf("a,b,,c,"), (std::vector<std::string>{"a", "b", "c"}));
  EXPECT_EQ(partsOf("/bin::/usr/bin", ':'), (std::vector<std::string>{"/bin", "/usr/bin"}));
}

TEST(Text, AUrlIsShownWithoutItsUser) {
  EXPECT_EQ(withoutUser("http://user:w@rd@host/a"), "http://***@host/a");
  for (const char* plain : {"http://host/a", "name@host", "", "://", "a@b://c"})
    EXPECT_EQ(withoutUser(plain), plain);
}

TEST(Text, ANumberIsTheWholeText) {
  EXPECT_EQ(numberIn<int>("-12"), -12);
  EXPECT_EQ(numberIn<std::uint64_t>("ff", 16), 255U);
  EXPECT_EQ(numberIn<double>("0.5"), 0.5);
  for (const char* text : {"", "12 ", " 12", "12x", "99999999999999999999", "+1"})
    EXPECT_FALSE(numberIn<int>(text)) << text;
  EXPECT_FALSE(numberIn<double>("inf"));
  EXPECT_FALSE(numberIn<double>("nan"));
}

}  // namespace
}  // namespace viaduct::base
