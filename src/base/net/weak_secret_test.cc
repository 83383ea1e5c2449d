#include "base/net/weak_secret.h"

#include <gtest/gtest.h>

#include "base/log.h"

namespace viaduct::base {
namespace {

TEST(IsGuessable, ShortAndRepeatedTextsAre) {
  for (const std::string_view text :
       {"", "secret", "Tr0ub4dor&3", "0123456789abcdef", "aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa",
        "abababababababababababababababab"})
    EXPECT_TRUE(isGuessable(text)) << text;
  EXPECT_FALSE(isGuessable("8f1b7f0f3b6f2a99d1c04c7e5a2d6b13")) << "128 random bits in hex";
  EXPECT_FALSE(isGuessable("kZ8v1Qm3T7xR2yB9wLpE4c")) << "128 random bits in base64";
}

int warnings = 0;

TEST(WarnIfGuessable, WarnsOnce) {
  setLogSink([](LogLevel level, std::string_view text) {
    warnings += level == LogLevel::kWarning;
    EXPECT_NE(text.find("openssl rand -hex 16"), std::string_view::npos) << text;
  });
  warnIfGuessable("");
  warnIfGuessable("8f1b7f0f3b6f2a99d1c04c7e5a2d6b13");
  EXPECT_EQ(warnings, 0);
  warnIfGuessable("secret");
  warnIfGuessable("secret");
  EXPECT_EQ(warnings, 1);
  setLogSink(nullptr);
}

}  // namespace
}  // namespace viaduct::base
