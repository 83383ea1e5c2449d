#include "agent/faults/fault_source.h"

#include <gtest/gtest.h>

#include <memory>
#include <string>
#include <vector>

#include "base/movable_clock.h"

namespace viaduct::agent {
namespace {

using namespace std::chrono_literals;

class FaultSourceTest : public ::testing::Test {
 protected:
  FaultSource source(const std::string& text) { return {*core::parseFaults(text), *poller_}; }
  // Passes `count` ops through the source. Returns the numbers of the ops that a fault hits,
  // counted from 1 in each call.
  static std::vector<std::uint64_t> hit(FaultSource& source, std::uint64_t count) {
    std::vector<std::uint64_t> out;
    for (std::uint64_t number = 1; number <= count;) {
      const std::size_t spared = source.spared(count - number + 1);
      source.passed(spared);
      number += spared;
      if (number > count) break;
      static_cast<void>(source.take());
      out.push_back(number++);
    }
    return out;
  }

  base::MovableClock clock_;
  std::unique_ptr<base::Poller> poller_ = *base::Poller::open(&clock_);
};

using Numbers = std::vector<std::uint64_t>;

TEST_F(FaultSourceTest, TheSameSeedHitsTheSameOps) {
  auto one = source("seed=7,stop@0.1"), same = source("seed=7,stop@0.1");
  auto other = source("seed=8,stop@0.1");
  const Numbers first = hit(one, 10'000);
  EXPECT_EQ(first, hit(same, 10'000));
  EXPECT_NE(first, hit(other, 10'000));
  EXPECT_GT(first.size(), 850U);  // 1000 are expected, with a deviation of 30
  EXPECT_LT(first.size(), 1150U);
}

TEST_F(FaultSourceTest, LeasesAreCountedApartFromOps) {
  auto faults = source("late-lease=5ms@op:2,late-lease=3ms@10s");
  EXPECT_EQ(faults.spared(100), 100U) << "no op is hit";
  faults.passed(100);
  EXPECT_EQ(faults.takeLease(), std::nullopt);
  EXPECT_EQ(faults.takeLease(), Duration(5ms));
  clock_.advance(10s);
  EXPECT_EQ(faults.takeLease(), Duration(3ms));
  EXPECT_EQ(faults.takeLease(), std::nullopt) << "a time hits once";
  EXPECT_EQ(faults.counts()[static_cast<std::size_t>(FaultKind::kLateLease)], 2U);
}

TEST_F(FaultSourceTest, ARefusedOpMeetsTheSameFaultAgain) {
  auto faults = source("stop@op:3");
  EXPECT_EQ(faults.spared(10), 2U);
  EXPECT_EQ(faults.spared(10), 2U);
  faults.passed(1);
  EXPECT_EQ(faults.spared(10), 1U);
  faults.passed(1);
  EXPECT_EQ(faults.spared(10), 0U);
  EXPECT_TRUE(faults.take().stop);
  EXPECT_EQ(faults.spared(10), 10U);
}

TEST_F(FaultSourceTest, ATimeHitsTheFirstOpAfterIt) {
  auto faults = source("kill-peer@10s");
  EXPECT_EQ(hit(faults, 5), Numbers());
  clock_.advance(10s);
  EXPECT_EQ(hit(faults, 5), Numbers{1});
  EXPECT_EQ(hit(faults, 5), Numbers());
}

TEST_F(FaultSourceTest, RulesHitOneOpTogether) {
  auto faults = source("delay=1ms,delay=5ms@op:1,corrupt@op:1,drop-rail@op:1");
  const OpFaults both = faults.take();
  EXPECT_EQ(both.delay, Duration(5ms));
  EXPECT_TRUE(both.corrupt && !both.stop && !both.kill_peer);
  EXPECT_EQ(both.drop_rail, Duration::max());
  const OpFaults next = faults.take();
  EXPECT_EQ(next.delay, Duration(1ms));
  EXPECT_FALSE(next.corrupt || next.drop_rail);
}

TEST_F(FaultSourceTest, ScratchBytesAreUsedOnceAtATime) {
  auto faults = source("corrupt");
  EXPECT_TRUE(faults.corrupts());
  EXPECT_FALSE(faults.takeScratch()) << "it is not pinned";
  faults.scratchIsPinned(4);
  std::size_t taken = 0;
  while (faults.takeScratch()) ++taken;
  EXPECT_EQ(taken, FaultSource::kScratchBytes);
  faults.giveScratch(17);
  EXPECT_EQ(faults.takeScratch(), 17U);
}

}  // namespace
}  // namespace viaduct::agent
