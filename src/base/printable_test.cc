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

}  // namespace
}  // namespace viaduct::base
