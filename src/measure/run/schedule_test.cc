#include "measure/run/schedule.h"

#include <gtest/gtest.h>

#include <string>

namespace viaduct::measure {
namespace {

using namespace std::chrono_literals;

struct Totals {
  std::uint64_t timed = 0, runs = 0, checked = 0;
  Duration time{0};
};
Totals totalsOf(const Schedule& schedule) {
  Totals out;
  for (std::uint64_t i = 0; i < schedule.runs(); ++i) {
    const Goal run = schedule.run(i);
    ++out.checked;
    if (!run.timed) continue;
    ++out.runs;
    out.timed += run.iterations;
    out.time += run.time;
  }
  return out;
}

constexpr ScheduleFacts kFast{.warm = {.seconds = 1e-6, .dice = 5}};

TEST(Schedules, TimedRunsAreTogetherTheRow) {
  for (const std::uint64_t iterations : {1U, 7U, 40U, 1000U}) {
    const Schedule made = scheduleOf({}, {.iterations = iterations}, kFast);
    const Totals all = totalsOf(made);
    EXPECT_EQ(all.timed, iterations);
    EXPECT_EQ(all.runs, iterations < 16 ? 1U : 3U);
    EXPECT_EQ(all.checked, 72U);
    EXPECT_EQ(made.planned.of_transfers, iterations);
    for (const Goal& run : made.mixed) {
      EXPECT_TRUE(!run.timed || run.iterations * 7 >= iterations);
    }
  }
  const Totals all = totalsOf(scheduleOf({.duration = 2s, .repeat = 2}, {}, kFast));
  EXPECT_EQ(all.runs, 6U);
  EXPECT_EQ(all.time, 4s);
}

TEST(Schedules, DifferForEachThrowOfTheDice) {
  const auto orderOf = [](std::uint64_t dice) {
    std::string out;
    for (const auto& run :
         scheduleOf({}, {.iterations = 1000}, {.warm = {.seconds = 1e-6, .dice = dice}}).mixed)
      out += run.timed ? std::to_string(run.iterations) + " " : "-";
    return out;
  };
  EXPECT_EQ(orderOf(1), orderOf(1));
  EXPECT_NE(orderOf(1), orderOf(2));
}

TEST(Schedules, OfSlowTransfersHaveFewShortRuns) {
  const Totals all =
      totalsOf(scheduleOf({}, {.iterations = 40}, {.warm = {.seconds = 0.1, .dice = 5}}));
  EXPECT_GE(all.checked, 3U + 6);
  EXPECT_LE(all.checked, 3U + 6);
}

TEST(Schedules, WithoutChecksHaveTimedRunsOnly) {
  const Schedule made = scheduleOf({.verify = Verified::kOff}, {.iterations = 100}, kFast);
  EXPECT_EQ(made.runs(), 3U);
}

TEST(Schedules, CheckEachTransferIfAllBytesAreCompared) {
  const Schedule made = scheduleOf({.depth = 4, .verify = Verified::kFull}, {.iterations = 10},
                                   {.warm = {.seconds = 1e-6}, .sets = 8});
  EXPECT_TRUE(made.every_transfer && made.refills);
  EXPECT_EQ(made.runs(), 3U);
  EXPECT_EQ(totalsOf(made).timed, 10U);
}

TEST(Schedules, OfManyTransfersThatAreAllCheckedNeedNoMemory) {
  const Schedule made =
      scheduleOf({.verify = Verified::kFull}, {.iterations = 4'000'000'000'000}, kFast);
  EXPECT_EQ(made.runs(), 4'000'000'000'000U);
  EXPECT_EQ(made.run(3'999'999'999'999).iterations, 1U);
}

TEST(Schedules, CheckEachReadIntoHostMemory) {
  const Workload read{.op = OpKind::kRead, .block_bytes = 4096, .iterations = 1000};
  EXPECT_TRUE(scheduleOf({}, read, kFast).every_transfer);
  EXPECT_FALSE(scheduleOf({.initiator_gpu = 0}, read, kFast).every_transfer);
  EXPECT_FALSE(scheduleOf({.depth = 2}, read, kFast).every_transfer) << "one set for both";
}

}  // namespace
}  // namespace viaduct::measure
