#include "base/log.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/time.h>
#include <unistd.h>

#include <array>
#include <chrono>
#include <climits>
#include <csignal>
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

// A pipe without room in the place of stderr.
class FullStderr {
 public:
  FullStderr() : before_(::dup(STDERR_FILENO)) {
    EXPECT_EQ(::pipe2(ends_.data(), O_CLOEXEC), 0);
    ::dup2(ends_[1], STDERR_FILENO);
    const auto room = static_cast<std::size_t>(::fcntl(ends_[1], F_GETPIPE_SZ));
    EXPECT_EQ(::write(ends_[1], std::string(room, '.').data(), room), static_cast<ssize_t>(room));
  }
  ~FullStderr() {
    ::dup2(before_, STDERR_FILENO);
    for (const int fd : {ends_[0], ends_[1], before_}) ::close(fd);
  }
  FullStderr(const FullStderr&) = delete;
  FullStderr& operator=(const FullStderr&) = delete;

  // Takes all that was written.
  std::string read() const {
    std::string out(1 << 20, '\0');
    out.resize(static_cast<std::size_t>(::read(ends_[0], out.data(), out.size())));
    return out;
  }

 private:
  const int before_;
  std::array<int, 2> ends_{};
};

TEST_F(Log, AReaderThatHasStoppedHoldsUpNobody) {
  const FullStderr full;
  for (int i = 0; i < 3; ++i) writeLogLine(LogLevel::kError, "nobody reads this");
  EXPECT_EQ(full.read().find("nobody"), std::string::npos);
  writeLogLine(LogLevel::kError, "somebody reads again");
  const std::string line = full.read();
  EXPECT_NE(
      line.find(" error: somebody reads again (stderr was full, and 3 earlier lines are lost)\n"),
      std::string::npos)
      << line;
}

TEST_F(Log, OnlyTheFirstLostLineWaitsForTheReader) {
  using Clock = std::chrono::steady_clock;
  const FullStderr full;
  const auto begin = Clock::now();
  writeLogLine(LogLevel::kError, "a slow reader might come");
  const auto first = Clock::now();
  EXPECT_GE(first - begin, kLogPatience);
  constexpr int kLines = 50;
  for (int i = 0; i < kLines; ++i) writeLogLine(LogLevel::kError, "nobody reads this");
  EXPECT_LT(Clock::now() - first, kLines * kLogPatience / 2);
  full.read();
  writeLogLine(LogLevel::kError, "somebody reads again");
}

TEST_F(Log, ALongLineIsCutToWhatAPipeTakesAtOnce) {
  const FullStderr full;
  full.read();
  writeLogLine(LogLevel::kError, std::string(10'000, 'x'));
  const std::string line = full.read();
  EXPECT_EQ(line.size(), std::size_t{PIPE_BUF});
  EXPECT_EQ(line.find(" ...\n"), line.size() - 5);
}

TEST_F(Log, ALongLineStillSaysHowManyAreLost) {
  const FullStderr full;
  writeLogLine(LogLevel::kError, "nobody reads this");
  full.read();
  writeLogLine(LogLevel::kError, std::string(10'000, 'x'));
  const std::string line = full.read();
  EXPECT_EQ(line.size(), std::size_t{PIPE_BUF});
  EXPECT_NE(line.find(" ... (stderr was full, and 1 earlier lines are lost)\n"), std::string::npos);
}

// A profiler's timer, for example.
TEST_F(Log, SignalsDoNotEndTheWaitForTheReader) {
  struct sigaction before{}, ignored{};
  ignored.sa_handler = [](int) {};
  ASSERT_EQ(::sigaction(SIGALRM, &ignored, &before), 0);
  const itimerval every{.it_interval = {.tv_sec = 0, .tv_usec = 5'000},
                        .it_value = {.tv_sec = 0, .tv_usec = 5'000}};
  ASSERT_EQ(::setitimer(ITIMER_REAL, &every, nullptr), 0);
  const auto begin = std::chrono::steady_clock::now();
  {
    const FullStderr full;
    writeLogLine(LogLevel::kError, "nobody reads this");
    EXPECT_GE(std::chrono::steady_clock::now() - begin, kLogPatience);
    full.read();
    writeLogLine(LogLevel::kError, "somebody reads again");
  }
  const itimerval never{};
  ASSERT_EQ(::setitimer(ITIMER_REAL, &never, nullptr), 0);
  ASSERT_EQ(::sigaction(SIGALRM, &before, nullptr), 0);
}

}  // namespace
}  // namespace viaduct::base
