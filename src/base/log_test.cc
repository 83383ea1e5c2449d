#include "base/log.h"

#include <gtest/gtest.h>

#include <string>

namespace viaduct::base {
namespace {

class Log : public ::testing::Test {
 protected:
  void TearDown() override { setLogLevel(before_); }

  template <class Call>
  static std::string written(Call call) {
    ::testing::internal::CaptureStderr();
    call();
    return ::testing::internal::GetCapturedStderr();
  }

  const LogLevel before_ = logLevel();
};

TEST_F(Log, LogOnceWritesOnlyTheFirstLine) {
  setLogLevel(LogLevel::kWarning);
  std::atomic_flag said, other;
  const auto say = [](std::atomic_flag& flag, int n) {
    return written([&] { logOnce(flag, LogLevel::kWarning, "number {}", n); });
  };
  EXPECT_NE(say(said, 1).find("warning: number 1\n"), std::string::npos);
  EXPECT_EQ(say(said, 2), "");
  EXPECT_NE(say(other, 3).find("warning: number 3\n"), std::string::npos);
}

TEST_F(Log, LinesBelowTheLevelAreNotWritten) {
  std::atomic_flag said;
  const auto say = [&] { logOnce(said, LogLevel::kWarning, "careful"); };
  setLogLevel(LogLevel::kError);
  EXPECT_EQ(written(say), "");
  setLogLevel(LogLevel::kWarning);
  EXPECT_NE(written(say), "");
}

}  // namespace
}  // namespace viaduct::base
