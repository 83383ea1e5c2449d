// Simulates runs with the noise of real machines. Counts how often a comparison reports a
// difference that does not exist, and how often it finds a real one. Both are counted per row.
#include <gtest/gtest.h>

#include "measure/report/compare.h"
#include "measure/result/noise_testing.h"
#include "measure/run/turns.h"

namespace viaduct::measure {
namespace {

constexpr std::size_t kRows = 25;  // of each comparison
constexpr std::size_t kComparisons = 40;
constexpr double kAll = kRows * kComparisons;

using Order = bool (*)(std::uint32_t turn, std::uint32_t runs);  // whether the turn belongs to A
bool inTurns(std::uint32_t turn, std::uint32_t /*runs*/) {
  return turnOrder(2, turn / 2)[turn % 2] == 0;
}
bool oneAfterTheOther(std::uint32_t turn, std::uint32_t runs) { return turn < runs; }

struct Sides {
  std::vector<Report> a = {}, b = {};
};

// Simulates `runs` runs of each side. B is `faster` times as fast as A. All parts of a run have the
// same rate.
Sides measured(Noise noise, Order order, std::uint32_t runs, double faster, base::Random& random) {
  std::vector<std::vector<double>> rates;
  for (std::size_t row = 0; row < kRows; ++row) rates.push_back(noise(2 * runs, random));
  Sides out;
  for (std::uint32_t turn = 0; turn < 2 * runs; ++turn) {
    const bool of_a = order(turn, runs);
    Report& report = (of_a ? out.a : out.b).emplace_back();
    report.started = "2026-01-02T03:04:" + std::to_string(10 + turn) + "Z";
    report.environment.fingerprint = "one";
    for (std::size_t row = 0; row < kRows; ++row) {
      const double rate = rates[row][turn] * (of_a ? 1 : faster);
      report.rows.push_back({.block_size = row + 1,
                             .gb_per_s = rate,
                             .gb_per_s_parts = {rate * 0.999, rate, rate * 1.001}});
    }
  }
  return out;
}

struct Found {
  // `sure` is the number of comparisons with exit code 0. The other counts are numbers of rows.
  std::size_t faster = 0, slower = 0, too_slow = 0, sure = 0;
};

Found compareOften(Noise noise, Order order, std::uint32_t runs, double faster,
                   const CompareOptions& options) {
  base::Random random(16);
  Found out;
  for (std::size_t i = 0; i < kComparisons; ++i) {
    const Sides sides = measured(noise, order, runs, faster, random);
    const auto found = compare(sides.a, sides.b, options);
    if (!found) {
      ADD_FAILURE() << found.error().text();
      return out;
    }
    out.sure += found->ok() ? 1 : 0;
    for (const RowComparison& row : found->rows) {
      out.faster += row.difference == Difference::kFaster ? 1 : 0;
      out.slower += row.difference == Difference::kSlower ? 1 : 0;
      out.too_slow += row.too_slow ? 1 : 0;
    }
  }
  return out;
}

constexpr CompareOptions kFiles{.slower = 0.05};
constexpr CompareOptions kAgainst{.across_time = true, .by_place = true, .slower = 0.05};

TEST(CompareSimulation, FewRunsCallNothingFasterOrSlower) {
  for (const NamedNoise& noise : kNoises)
    for (const std::uint32_t runs : {1U, 3U}) {
      const Found found = compareOften(noise.noise, inTurns, runs, 1, kFiles);
      EXPECT_EQ(found.faster + found.slower + found.too_slow, 0U) << noise.name << " " << runs;
      EXPECT_EQ(found.sure, 0U);
    }
}

TEST(CompareSimulation, RunsInTurnsAreWrongInLessThanOneRowOfTwenty) {
  for (const NamedNoise& noise : kNoises)
    for (const std::uint32_t runs : {4U, 5U, 8U})
      for (const CompareOptions& options : {kFiles, kAgainst}) {
        const Found found = compareOften(noise.noise, inTurns, runs, 1, options);
        EXPECT_LE(static_cast<double>(found.faster + found.slower), 0.05 * kAll)
            << noise.name << ", runs " << runs;
        EXPECT_LE(static_cast<double>(found.too_slow), 0.05 * kAll) << noise.name << ", " << runs;
      }
}

TEST(CompareSimulation, RunsOfOneSideAfterTheOtherGiveNoVerdict) {
  for (const NamedNoise& noise : kNoises) {
    const Found found = compareOften(noise.noise, oneAfterTheOther, 5, 1, kFiles);
    EXPECT_EQ(found.faster + found.slower + found.too_slow + found.sure, 0U) << noise.name;
  }
  CompareOptions all_the_same = kFiles;
  all_the_same.across_time = true;
  const Found drift = compareOften(steadyDrift, oneAfterTheOther, 5, 1, all_the_same);
  EXPECT_GE(static_cast<double>(drift.faster + drift.slower), 0.9 * kAll) << "hence no verdict";
}

TEST(CompareSimulation, ATenthMoreIsReported) {
  struct Case {
    Noise noise;
    std::uint32_t runs;
    double least;  // the least part of rows in which the difference is seen
  };
  for (const Case& one : {Case{evenNoise, 4, 0.7}, Case{evenNoise, 5, 0.85},
                          Case{evenNoise, 8, 0.95}, Case{heavyTails, 8, 0.6}}) {
    const Found up = compareOften(one.noise, inTurns, one.runs, 1.1, kFiles);
    EXPECT_GE(static_cast<double>(up.faster), one.least * kAll) << one.runs;
    EXPECT_EQ(up.slower, 0U);
    const Found down = compareOften(one.noise, inTurns, one.runs, 1 / 1.1, kFiles);
    EXPECT_GE(static_cast<double>(down.slower), one.least * kAll) << one.runs;
  }
}

TEST(CompareSimulation, ASlowdownOfAFifthFails) {
  const Found found = compareOften(evenNoise, inTurns, 5, 0.8, kFiles);
  EXPECT_GE(static_cast<double>(found.too_slow), 0.85 * kAll);
  EXPECT_EQ(found.sure, 0U);
}

}  // namespace
}  // namespace viaduct::measure
