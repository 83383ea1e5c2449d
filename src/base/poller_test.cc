#include "base/poller.h"

#include <gtest/gtest.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include "base/fd.h"

namespace viaduct::base {
namespace {

using namespace std::chrono_literals;

class PollerTest : public ::testing::Test {
 protected:
  bool turn(std::chrono::milliseconds wait) {
    Poller::Events events;
    const int count = poller_->block(events, Clock::now() + wait);
    return poller_->handle(events, count, Clock::now());
  }
  void ring(const Fd& fd) {
    const std::uint64_t one = 1;
    ASSERT_EQ(::write(fd.get(), &one, sizeof one), 8);
  }
  std::unique_ptr<Poller> poller_ = std::move(*Poller::open());
  Fd bell_{::eventfd(0, EFD_NONBLOCK | EFD_CLOEXEC)};
};

TEST_F(PollerTest, HandlesAnEventUntilForgotten) {
  int rung = 0;
  auto id = poller_->watch(bell_.get(), EPOLLIN, [&](std::uint32_t) { ++rung; });
  ASSERT_TRUE(id);
  EXPECT_FALSE(turn(0ms));
  ring(bell_);
  EXPECT_TRUE(turn(1s));
  EXPECT_EQ(rung, 1);
  poller_->forget(*id);
  EXPECT_FALSE(turn(0ms));
  EXPECT_EQ(rung, 1);
}

TEST_F(PollerTest, AHandlerForgottenByAnotherInTheSameBatchDoesNotRun) {
  const Fd other{::eventfd(1, EFD_NONBLOCK | EFD_CLOEXEC)};
  ring(bell_);
  Poller::Id a = 0, b = 0;
  int runs = 0;
  a = *poller_->watch(bell_.get(), EPOLLIN, [&](std::uint32_t) {
    ++runs;
    poller_->forget(a);
    poller_->forget(b);
  });
  b = *poller_->watch(other.get(), EPOLLIN, [&](std::uint32_t) {
    ++runs;
    poller_->forget(a);
    poller_->forget(b);
  });
  EXPECT_TRUE(turn(1s));
  EXPECT_EQ(runs, 1);
}

TEST_F(PollerTest, TimersRunInOrderAndOnceAndNotWhenForgotten) {
  std::string ran;
  const auto now = Clock::now();
  poller_->at(now + 2ms, [&] { ran += 'b'; });
  poller_->at(now + 1ms, [&] { ran += 'a'; });
  const auto forgotten = poller_->at(now + 1ms, [&] { ran += 'x'; });
  poller_->forgetTimer(forgotten);
  EXPECT_EQ(poller_->nextTimer(), now + 1ms);
  poller_->handle({}, 0, now + 5ms);
  poller_->handle({}, 0, now + 9ms);
  EXPECT_EQ(ran, "ab");
}

}  // namespace
}  // namespace viaduct::base
