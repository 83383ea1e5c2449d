#include "measure/result/row_figures.h"

#include <gtest/gtest.h>

#include "measure/result/row_testing.h"

namespace viaduct::measure {
namespace {

TEST(RowFigures, OneStreamHasTheMedianOfItsParts) {
  const Row row = withCounts({.backend = "tcp", .block_size = 1000}, {1, 2, 6});
  EXPECT_DOUBLE_EQ(row.gb_per_s.value_or(0), 2);
  EXPECT_DOUBLE_EQ(row.gb_per_s_spread.value_or(0), 0.5);
  EXPECT_EQ(row.iterations, 1001U + 2001U + 6001U);
  EXPECT_DOUBLE_EQ(row.completions_per_s.value_or(0),
                   static_cast<double>(row.iterations) / row.seconds);
}

TEST(RowFigures, SeveralStreamsHaveTheMedianOfTheRepeats) {
  Row row{.counts = RowCounts{.streams = 2,
                              .repeats = {{{2'000'000'000, 1}, {{2'000'000'000, 0.5}}},
                                          {{4'000'000'000, 1}, {}},
                                          {{9'000'000'000, 1}, {}}}}};
  row.pairs = {{.repeats = {{1'000'000'000, 1}, {2'000'000'000, 1}, {3'000'000'000, 1}}}};
  computeFigures(row);
  EXPECT_DOUBLE_EQ(row.gb_per_s.value_or(0), 4);
  EXPECT_DOUBLE_EQ(row.seconds, 3);
  EXPECT_DOUBLE_EQ(row.pairs[0].gb_per_s.value_or(0), 2);
}

TEST(RowFigures, CoresAreThoseOfEachHostOnce) {
  const MemberCounts busy{.cpu_s = 0.5, .counted_s = 1, .machine_cpu_s = 3, .processors = 4};
  Row row{.counts = RowCounts{.repeats = {{{1, 1}, {}}}, .members = {busy, busy, busy}}};
  row.counts->members[0].initiator = true;
  row.counts->members[2].host = 2;
  computeFigures(row);
  EXPECT_EQ(row.cpu_s, (CpuSeconds{0.5, 1}));
  EXPECT_DOUBLE_EQ(row.cores_busy.value_or(0), 1.5);
  EXPECT_DOUBLE_EQ(row.cores_others.value_or(0), 4.5);
  EXPECT_EQ(machinesOf(*row.counts)->processors, 8);
  row.counts->members[1].processors = 0;
  EXPECT_FALSE(machinesOf(*row.counts)) << "a host does not tell";
}

TEST(RowFigures, CoresBusyNeedTheTimeOfTheRow) {
  EXPECT_DOUBLE_EQ(coresBusy(1.5, 0.99, 1.0), 1.5);
  EXPECT_EQ(coresBusy(0.0004, 0.00003, 0.001), 0) << "a row of 30 us within a millisecond";
  EXPECT_EQ(coresBusy(1, 1, 0), 0) << "it was not measured";
}

TEST(RowFigures, ComputingAgainChangesNothing) {
  Row row = withCounts({.backend = "tcp", .block_size = 4096, .batch_size = 2}, {3, 4, 5});
  for (const FigureRule& rule : figureRules()) {
    Row again = row;
    rule.compute(again);
    EXPECT_EQ(again, row) << rule.figure;
  }
}

}  // namespace
}  // namespace viaduct::measure
