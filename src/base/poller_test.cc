#include "base/poller.h"

#include <gtest/gtest.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include <thread>

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

TEST_F(PollerTest, AnEventWithoutAHandlerOnlyEndsTheBlock) {
  ASSERT_TRUE(poller_->watch(bell_.get(), EPOLLIN, {}));
  ring(bell_);
  Poller::Events events;
  EXPECT_EQ(poller_->block(events, Clock::now() + 30s), 1);
  EXPECT_FALSE(poller_->handle(events, 1, Clock::now()));
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

// A timer is due by the clock of its poller, whichever thread sleeps there.
TEST(PollerOfAClock, RunsATimerWhenItsTestMovesTheClock) {
  MovableClock clock;
  const auto poller = std::move(*Poller::open(&clock));
  int ran = 0;
  poller->at(poller->now() + 24h, [&] { ++ran; });
  Poller::Events events;
  EXPECT_FALSE(
      poller->handle(events, poller->block(events, Clock::time_point::min()), poller->now()));
  clock.advance(23h);
  EXPECT_FALSE(
      poller->handle(events, poller->block(events, Clock::time_point::min()), poller->now()));
  const std::jthread mover([&] { clock.advance(1h); });
  for (const Deadline until = 10s; ran == 0 && !until.passed();)
    poller->handle(events, poller->block(events, poller->nextTimer()), poller->now());
  EXPECT_EQ(ran, 1);
}

TEST(PollerOfAClock, TurnsACallersDeadlineIntoItsOwnTime) {
  MovableClock clock;
  const auto moved = std::move(*Poller::open(&clock)), plain = std::move(*Poller::open());
  const auto deadline = Clock::now() + 20s;
  clock.advance(24h);
  EXPECT_EQ(moved->fromSteady(deadline), deadline + 24h);
  EXPECT_EQ(moved->toSteady(moved->fromSteady(deadline)), deadline);
  EXPECT_EQ(plain->fromSteady(deadline), deadline);
  for (const auto never : {Clock::time_point::max(), Clock::time_point::min()})
    EXPECT_EQ(moved->fromSteady(never), never);
  EXPECT_EQ(moved->waitFor(moved->now() - 1s), 0);
}

}  // namespace
}  // namespace viaduct::base
