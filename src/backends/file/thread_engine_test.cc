// The engine of threads, while the system starts no thread.
#include <gtest/gtest.h>
#include <poll.h>

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
    engine_->start(7, {.fd = ::fileno(file_.get()), .memory = memory_.data(), .bytes = kBytes});
    const Engine::EndedIo ended = next();
    EXPECT_EQ(ended.token, 7U);
    return ended.result;
  }
  Engine::EndedIo next() {
    pollfd wait{.fd = engine_->fds().at(0), .events = POLLIN, .revents = 0};
    Engine::EndedIo ended;
    while (!engine_->next(ended)) EXPECT_EQ(::poll(&wait, 1, 30'000), 1);
    return ended;
  }

  static constexpr std::uint32_t kBytes = 8;
  struct Close {
    void operator()(std::FILE* file) const { std::fclose(file); }
  };
  std::unique_ptr<std::FILE, Close> file_{std::tmpfile()};
  std::array<std::byte, kBytes> memory_{};
  std::unique_ptr<Engine> engine_ = *openThreads(4);
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
  for (int i = 0; i < 4; ++i) {
    const Engine::EndedIo ended = next();
    EXPECT_EQ(ended.result, static_cast<int>(kBytes)) << ended.token;
  }
  Engine::EndedIo none;
  EXPECT_FALSE(engine_->next(none));
}

}  // namespace
}  // namespace viaduct::file
