#include "move/channel_life.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <initializer_list>
#include <set>
#include <utility>
#include <vector>

namespace viaduct::move {
namespace {

using enum ChannelSteps::State;
using enum ChannelSteps::Event;

constexpr std::array kStates{kResting, kRenewing, kWaiting, kProbing, kUp,
                             kBroken,  kClosing,  kFencing, kOver};
constexpr std::array kEvents{kOpen,  kOpenFailed, kJoin,       kProve,      kBreak,
                             kClose, kFence,      kPeerClosed, kPeerFenced, kEnd};
constexpr RetryRule kRule{.first = std::chrono::milliseconds(10),
                          .last = std::chrono::milliseconds(50),
                          .worked = std::chrono::hours(1)};

ChannelLife after(std::initializer_list<ChannelEvent> events, const RetryRule& rule = kRule) {
  ChannelLife life(1, rule);
  for (const ChannelEvent event : events) EXPECT_TRUE(life.on(event)) << static_cast<int>(event);
  return life;
}

// One life in each state that transitions reach from the first state.
std::vector<ChannelLife> reachable() {
  std::vector<ChannelLife> out{ChannelLife(1, kRule)};
  std::set<ChannelState> seen{kResting};
  for (std::size_t i = 0; i < out.size(); ++i)
    for (const ChannelEvent event : kEvents)
      if (ChannelLife next = out[i]; next.on(event) && seen.insert(next.state()).second)
        out.push_back(next);
  return out;
}

TEST(ChannelLifeTable, AStateAndAnEventHaveAtMostOneTransition) {
  for (const auto& step : ChannelSteps::kSteps) {
    EXPECT_FALSE(step.reason.empty());
    EXPECT_EQ(step.from & anyOf(step.to), 0U) << step.reason;
    for (const auto& other : ChannelSteps::kSteps)
      EXPECT_TRUE(&step == &other || step.event != other.event || (step.from & other.from) == 0)
          << step.reason << " / " << other.reason;
  }
}

TEST(ChannelLifeTable, ReachesEveryState) { EXPECT_EQ(reachable().size(), kStates.size()); }

// Until both ends are closed, the peer may write or read this process's memory.
TEST(ChannelLifeTable, RestsOnlyIfThePeerHasClosedOrNeverHeardOfTheLife) {
  for (const auto& step : ChannelSteps::kSteps) {
    const bool rests = step.to == kResting || step.to == kRenewing;
    const bool over_there = step.event == kPeerClosed || step.event == kPeerFenced;
    EXPECT_EQ(rests, over_there || step.event == kOpenFailed) << step.reason;
  }
}

TEST(ChannelLifeTable, TheEndOfTheLinkEndsEveryState) {
  for (ChannelLife life : reachable()) {
    const bool was_over = life.state() == kOver;
    EXPECT_EQ(life.on(kEnd), !was_over);
    EXPECT_EQ(life.state(), kOver);
    for (const ChannelEvent event : kEvents) EXPECT_FALSE(life.on(event));
  }
}

TEST(ChannelLifeTable, AMissingTransitionChangesNothing) {
  for (const ChannelLife& life : reachable())
    for (const ChannelEvent event : kEvents) {
      ChannelLife copy = life;
      const bool stepped = copy.on(event);
      EXPECT_EQ(stepped, copy.state() != life.state()) << static_cast<int>(event);
    }
}

TEST(ChannelLifeTable, DownAndClosingAreTrueInTheirStatesOnly) {
  for (const ChannelLife& life : reachable()) {
    const ChannelState state = life.state();
    EXPECT_EQ(life.down(),
              state != kWaiting && state != kProbing && state != kUp && state != kBroken);
    EXPECT_EQ(life.closing(), state == kClosing || state == kFencing);
  }
}

TEST(ChannelLife, TheNextLifeHasTheNextNumberAtBothEnds) {
  ChannelLife life = after({kOpen, kJoin, kProve, kBreak});
  EXPECT_EQ(life.number(), 1U);
  EXPECT_TRUE(life.isFirst());
  EXPECT_TRUE(life.on(kClose));
  EXPECT_EQ(life.number(), 1U) << "the peer may still use it";
  EXPECT_TRUE(life.on(kPeerClosed));
  EXPECT_EQ(life.number(), 2U);
  EXPECT_FALSE(life.isFirst());
}

TEST(ChannelLife, ABreakInARowDoublesTheWait) {
  ChannelLife life(1, kRule);
  std::vector<Duration> waits;
  for (int i = 0; i < 4; ++i) {
    for (const ChannelEvent event : {kOpen, kProve, kClose, kPeerClosed}) life.on(event);
    waits.push_back(life.wait());
  }
  using std::chrono::milliseconds;
  EXPECT_EQ(waits, (std::vector<Duration>{milliseconds(10), milliseconds(20), milliseconds(40),
                                          milliseconds(50)}));
  EXPECT_EQ(life.breaks(), 4);
}

TEST(ChannelLife, AChannelThatWasUpLongEnoughStartsANewCount) {
  ChannelLife life = after({kOpen, kClose, kPeerClosed, kOpen, kClose, kPeerClosed}, {});
  EXPECT_EQ(life.breaks(), 2);
  for (const ChannelEvent event : {kOpen, kProve, kClose, kPeerClosed}) life.on(event);
  EXPECT_EQ(life.breaks(), 1);
}

TEST(ChannelLife, AFenceOfEitherEndIsNoBreak) {
  for (const auto& events : {std::array{kFence, kPeerClosed}, std::array{kFence, kPeerFenced},
                             std::array{kClose, kPeerFenced}}) {
    ChannelLife life = after({kOpen, kProve});
    for (const ChannelEvent event : events) EXPECT_TRUE(life.on(event));
    EXPECT_EQ(life.breaks(), 0);
    EXPECT_TRUE(life.on(kOpen));
    EXPECT_TRUE(life.wasRenewed());
  }
  EXPECT_FALSE(after({kOpen, kClose, kPeerClosed, kOpen}).wasRenewed());
}

TEST(ChannelLife, ALinkWaitsForAChannelUntilItIsUpOrHasFailed) {
  EXPECT_FALSE(after({kOpen, kJoin}).decided());
  EXPECT_FALSE(after({kOpen, kFence}).decided()) << "it opens again at once";
  EXPECT_TRUE(after({kOpen, kProve}).decided());
  EXPECT_TRUE(after({kOpen, kOpenFailed}).decided());
  EXPECT_TRUE(after({kOpen, kClose}).decided());
}

}  // namespace
}  // namespace viaduct::move
