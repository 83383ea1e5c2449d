#include "meet/records.h"

#include <gtest/gtest.h>

namespace viaduct::meet {
namespace {

TEST(Records, AnEntryDecodesToTheEncodedValues) {
  const auto entry = decodeRecord<Entry>(encodeRecord(Entry{"boot|1 2", "value"}));
  ASSERT_TRUE(entry);
  EXPECT_EQ(entry->identity, "boot|1 2");
  EXPECT_EQ(entry->value, "value");
}

TEST(Records, TruncatedOrTooLongBytesDecodeToNothing) {
  const std::string entry = encodeRecord(Entry{"i", "v"});
  for (std::size_t i = 0; i < entry.size(); ++i)
    EXPECT_FALSE(decodeRecord<Entry>(entry.substr(0, i))) << i;
  EXPECT_FALSE(decodeRecord<Entry>(entry + "x"));
}

TEST(Records, ANameIsOnePartOfAKey) {
  EXPECT_EQ(escaped("a/b c-1_.%"), "a%2fb%20c-1_.%25");
  for (const std::string name : {"a/b c-1_.%", "%2f", "%", "%4", "", "\xc3\xa4"})
    EXPECT_EQ(unescaped(escaped(name)), name);
}

}  // namespace
}  // namespace viaduct::meet
