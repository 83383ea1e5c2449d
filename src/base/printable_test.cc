#include "base/printable.h"

#include <gtest/gtest.h>

namespace viaduct::base {
namespace {

TEST(Printable, IsOneLineOfPrintableAscii) {
  EXPECT_EQ(printable("a b\tc"), "a b c");
  EXPECT_EQ(printable("a\nb\r\x1b[2J\x7f\xff"), "a\\x0ab\\x0d\\x1b[2J\\x7f\\xff");
  EXPECT_EQ(printable(std::string_view("\0", 1)), "\\x00");
}

TEST(Printable, IsBounded) {
  EXPECT_EQ(printable(std::string(120, 'x')), std::string(120, 'x'));
  EXPECT_EQ(printable(std::string(500, 'x')), std::string(120, 'x') + "...");
  EXPECT_EQ(printable("abcd", 3), "abc...");
  EXPECT_EQ(printable("", 0), "");
}

TEST(Printable, KnowsOneLineOfCharacters) {
  for (const std::string_view text : {"", "decode-3",
                                      "gr\xc3\xb6\xc3\x9f"
                                      "e \xf0\x9f\x9a\x80"})
    EXPECT_TRUE(isPrintable(text)) << text;
  for (const std::string_view text : {"a\nb", "a\r", "\x1b[2J", "\t", "\x7f", "\xff", "\xc3",
                                      "\xc2\x9b"
                                      "2J",
                                      "\xc0\x9b"})
    EXPECT_FALSE(isPrintable(text)) << printable(text);
  EXPECT_FALSE(isPrintable(std::string_view("a\0b", 3)));
}

}  // namespace
}  // namespace viaduct::base
