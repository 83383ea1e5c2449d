#include "base/base64.h"

#include <gtest/gtest.h>

namespace viaduct::base {
namespace {

TEST(Base64, RoundTripsEveryLength) {
  std::string bytes;
  for (int i = 0; i < 300; ++i) {
    EXPECT_EQ(fromBase64(toBase64(bytes)), bytes);
    bytes += static_cast<char>(i * 7);
  }
  EXPECT_EQ(toBase64("fo"), "Zm8=");
}

TEST(Base64, RefusesMalformedText) {
  for (const char* text : {"A", "AA", "AAA", "A===", "====", "AA=A", "AA?A", "AAAA\n"})
    EXPECT_FALSE(fromBase64(text)) << text;
}

}  // namespace
}  // namespace viaduct::base
