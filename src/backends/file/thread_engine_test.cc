// The engine of threads, while the system starts no thread.
#include <gtest/gtest.h>

#include <array>
#include <cerrno>
#include <cstdio>
#include <memory>
#include <vector>

#include "backends/file/engine.h"
#include "support/shortage.h"

namespace viaduct::file {
namespace {

class ThreadEngineTest : public ::testing::Test {
 protected:
  // The result of a read of the whole file, which is one request.
  int read() {
    std::vector<Engine::Ended> ended;
    engine_->start(7, {.fd = ::fileno(file_.get()), .memory = memory_.data(), .bytes = kBytes});
    while (ended.empty()) engine_->wait(true, ended);
    EXPECT_EQ(ended.size(), 1U);
    EXPECT_EQ(ended[0].token, 7U);
    return ended[0].result;
  }

  static constexpr std::uint32_t kBytes = 8;
  std::unique_ptr<std::FILE, decltype(&std::fclose)> file_{std::tmpfile(), &std::fclose};
  std::array<std::byte, kBytes> memory_{};
  std::unique_ptr<Engine> engine_ = openThreads(4);
};

TEST_F(ThreadEngineTest, FailsRequestsUntilAThreadStarts) {
  ASSERT_GE(std::fputs("contents", file_.get()), 0);
  ASSERT_EQ(std::fflush(file_.get()), 0);
  {
    const testing::ThreadShortage shortage(0);
    EXPECT_EQ(read(), -EAGAIN);
  }
  EXPECT_EQ(read(), static_cast<int>(kBytes));
}

TEST_F(ThreadEngineTest, WorksWithFewerThreadsThanItWants) {
  ASSERT_GE(std::fputs("contents", file_.get()), 0);
  ASSERT_EQ(std::fflush(file_.get()), 0);
  const testing::ThreadShortage shortage(1);
  for (std::uint32_t token = 0; token < 4; ++token)
    engine_->start(token, {.fd = ::fileno(file_.get()), .memory = memory_.data(), .bytes = kBytes});
  std::vector<Engine::Ended> ended;
  while (ended.size() < 4) engine_->wait(true, ended);
  for (const auto& one : ended) EXPECT_EQ(one.result, static_cast<int>(kBytes)) << one.token;
}

}  // namespace
}  // namespace viaduct::file
