#include "measure/report/compare.h"

#include <gtest/gtest.h>

namespace viaduct::measure {
namespace {

Row row(std::uint64_t block, double gb, double noise = 0.01) {
  return {.backend = "tcp",
          .block_size = block,
          .gb_per_s = gb,
          .gb_per_s_parts = {gb * (1 - noise), gb * (1 - noise / 2), gb, gb * (1 + noise / 2),
                             gb * (1 + noise)},
          .latency_us = Latency{.mean = 10, .p50 = 100 / gb, .p99 = 200 / gb}};
}

Report report(std::vector<Row> rows) {
  Report out{.environment = {.members = {{.rank = 0, .host = {.kernel = "6.1", .cores = 4}}}},
             .settings = {{"verify", "full"}, {"json", "a.json"}},
             .agent = {{"sockets", "1"}, {"name", "x"}},
             .rows = std::move(rows)};
  out.environment.fingerprint = fingerprintOf(out.environment.members);
  return out;
}

// Compares four runs of each side, which take turns and have a little noise.
Result<Comparison> fourOfEach(const Report& a, const Report& b, const CompareOptions& options) {
  const auto runs = [](const Report& like, int first) {
    std::vector<Report> out;
    for (const double luck : {0.995, 1.0, 1.003, 1.005}) {
      Report& run = out.emplace_back(like);
      run.started = "2026-01-02T03:04:" + std::to_string(first) + "Z";
      first += 2;
      for (Row& one : run.rows)
        if (one.gb_per_s) *one.gb_per_s *= luck;
    }
    return out;
  };
  return compare(runs(a, 10), runs(b, 11), options);
}

Comparison compared(const Report& a, const Report& b, const CompareOptions& options = {}) {
  auto out = fourOfEach(a, b, options);
  EXPECT_TRUE(out) << out.error().text();
  return out ? *std::move(out) : Comparison{};
}

// Makes runs with one row each. They take every second turn from `first` on.
std::vector<Report> runsOf(const std::vector<double>& rates, int first = 0) {
  std::vector<Report> out;
  for (const double rate : rates) {
    out.push_back(report({row(1, rate)}));
    out.back().started = "2026-01-02T03:04:" + std::to_string(10 + first) + "Z";
    first += 2;
  }
  return out;
}

TEST(Compare, FasterSlowerAndNoDifference) {
  const auto found = compared(report({row(1, 10), row(2, 10), row(3, 10)}),
                              report({row(3, 10.02), row(2, 5), row(1, 20)}));
  ASSERT_EQ(found.rows.size(), 3U);
  EXPECT_EQ(found.rows[0].difference, Difference::kFaster);
  EXPECT_EQ(found.rows[0].a.block_size, 1U) << "in the order of A";
  EXPECT_NEAR(found.rows[0].rate->ratio, 2, 0.01);
  EXPECT_NEAR(*found.rows[0].p50, 0.5, 0.001);
  EXPECT_NEAR(*found.rows[0].p99, 0.5, 0.001);
  EXPECT_EQ(found.rows[1].difference, Difference::kSlower);
  EXPECT_EQ(found.rows[1].rate->effect, -1);
  EXPECT_EQ(found.rows[2].difference, Difference::kNoneSeen);
}

TEST(Compare, RowsWithoutPartnersAreNamed) {
  Row read = row(1, 1);
  read.op = OpKind::kRead;
  const auto found = compared(report({row(1, 1), row(2, 1)}), report({row(1, 1), read}));
  ASSERT_EQ(found.rows.size(), 1U);
  ASSERT_EQ(found.only_a.size(), 1U);
  EXPECT_NE(found.only_a[0].find("1 x 2 B,"), std::string::npos) << found.only_a[0];
  ASSERT_EQ(found.only_b.size(), 1U);
  EXPECT_NE(found.only_b[0].find("tcp read"), std::string::npos) << found.only_b[0];
  EXPECT_FALSE(compare({report({row(1, 1)})}, {report({row(2, 1)})}, {}));
}

TEST(Compare, ByPlaceRowsMayDifferInAllButTheBlockSize) {
  Row other = row(1, 5);
  other.backend = "local";
  other.batch_size = 7;
  const CompareOptions by_place{.across_settings = true, .by_place = true};
  const auto found =
      compared(report({row(1, 10), row(1, 10)}), report({other, row(1, 20)}), by_place);
  ASSERT_EQ(found.rows.size(), 2U);
  EXPECT_EQ(found.rows[0].difference, Difference::kSlower);
  EXPECT_EQ(found.rows[0].b.batch_size, 7U);
  EXPECT_EQ(found.rows[1].difference, Difference::kFaster);
  const auto unlike = compare({report({row(1, 10)})}, {report({row(2, 10)})}, by_place);
  ASSERT_FALSE(unlike);
  EXPECT_EQ(unlike.error().detail, "the transfers of A and B have other sizes");
}

TEST(Compare, TrialsOfARowAreOneRowByPlaceToo) {
  const auto trials = [](double rate) {
    std::vector<Row> out;
    for (std::uint32_t trial = 0; trial < 2; ++trial)
      for (const bool bulk : {false, true}) {
        out.push_back(row(1, rate + trial));
        out.back().scheme = bulk ? "kv-bulk" : "kv-paged";
        out.back().kind = KvWorkload{.model = "m", .bulk = bulk, .trial = trial, .trials = 2};
      }
    return report(out);
  };
  const auto found = compared(trials(10), trials(20), {.by_place = true});
  ASSERT_EQ(found.rows.size(), 2U);
  EXPECT_NEAR(found.rows[0].a_gb_per_s, 10.5, 0.1) << "the median of the trials of a run";
  EXPECT_EQ(found.rows[1].b.scheme, "kv-bulk");
}

TEST(Compare, OnlyACertainSlowdownFails) {
  const CompareOptions five{.slower = 0.05};
  const auto sure = compared(report({row(1, 10)}), report({row(1, 9)}), five);
  EXPECT_TRUE(sure.rows[0].too_slow);
  EXPECT_FALSE(sure.ok());
  const auto little = compared(report({row(1, 10)}), report({row(1, 9.8)}), five);
  EXPECT_EQ(little.rows[0].difference, Difference::kSlower);
  EXPECT_FALSE(little.rows[0].too_slow || little.rows[0].perhaps_slow);
  EXPECT_TRUE(little.ok());
  const auto noisy = compare(runsOf({10, 12, 8, 11}), runsOf({9.4, 7.5, 11.5, 9}, 1), five);
  ASSERT_TRUE(noisy);
  EXPECT_FALSE(noisy->rows[0].too_slow);
  EXPECT_TRUE(noisy->rows[0].perhaps_slow);
  EXPECT_TRUE(noisy->ok());
}

TEST(Compare, FewerThanFourRunsOfASideGiveNoAnswer) {
  const CompareOptions five{.slower = 0.05};
  const std::vector<double> rates{5, 5.1, 5.2, 5.05};
  for (const std::size_t runs : {1U, 2U, 3U}) {
    const std::vector<double> few(rates.begin(), rates.begin() + static_cast<long>(runs));
    for (const auto& found : {compare(runsOf({10, 10.1, 10.2, 10.05}), runsOf(few, 1), five),
                              compare(runsOf(few), runsOf({10, 10.1, 10.2, 10.05}, 1), five)}) {
      ASSERT_TRUE(found);
      EXPECT_EQ(found->rows[0].difference, Difference::kTooFewRuns);
      EXPECT_FALSE(found->rows[0].rate->interval);
      EXPECT_FALSE(found->rows[0].too_slow || found->rows[0].perhaps_slow);
      EXPECT_EQ(found->evidence, SampleEvidence::kTooFewRuns);
      EXPECT_FALSE(found->ok() || found->isWorse());
    }
  }
}

TEST(Compare, ARowThatARunLacksHasTooFewRuns) {
  auto b = runsOf({10, 10.1, 10.2, 10.05}, 1);
  b[2].rows = {row(2, 1)};
  const auto found = compare(runsOf({5, 5.1, 5.2, 5.05}), b, {});
  ASSERT_TRUE(found);
  EXPECT_EQ(found->rows[0].difference, Difference::kTooFewRuns);
  EXPECT_EQ(found->evidence, SampleEvidence::kTooFewRuns);
}

TEST(Compare, RowsThatARunRepeatsAreOneFigure) {
  const Report a = report({row(1, 10), row(1, 11), row(1, 12), row(1, 13), row(1, 14)});
  const auto found = compare({a}, {report({row(1, 1), row(1, 2), row(1, 3), row(1, 4)})}, {});
  ASSERT_TRUE(found);
  EXPECT_EQ(found->rows[0].difference, Difference::kTooFewRuns);
  EXPECT_DOUBLE_EQ(found->rows[0].a_gb_per_s, 12);
}

// Returns how many runs A has.
std::size_t runsIn(const std::vector<Report>& a) {
  const auto found = compare(a, runsOf({5, 6, 7, 8}, 1), {});
  EXPECT_TRUE(found) << found.error().text();
  EXPECT_EQ(found->copies.empty(), found->runs_a == a.size());
  return found ? found->runs_a : 0;
}

TEST(Compare, OneRunUnderTwoNamesCountsOnce) {
  const auto runs = runsOf({10, 10.1, 10.2, 10.05});
  EXPECT_EQ(runsIn(runs), 4U);
  EXPECT_EQ(runsIn({runs[0], runs[1], runs[2], runs[0]}), 3U);
}

TEST(Compare, CopiesWithEditedStartsCountOnce) {
  auto runs = runsOf({10, 10.1, 10.2, 10.05});
  for (Report& run : runs) run.rows[0].run = "beef";
  EXPECT_EQ(runsIn(runs), 1U) << "the ids are equal";
  for (std::size_t i = 0; i < runs.size(); ++i) {
    runs[i].rows[0].run = std::string(1, static_cast<char>('a' + i));
    runs[i].rows[0].counts = RowCounts{.repeats = {{.whole = {1'000'000, 0.25}}}};
  }
  EXPECT_EQ(runsIn(runs), 1U) << "the counts are equal";
  for (std::size_t i = 0; i < runs.size(); ++i) runs[i].rows[0].counts->repeats[0].whole.bytes += i;
  EXPECT_EQ(runsIn(runs), 4U);
}

TEST(Compare, HostsOfOneKindAreNamedIfTheyDiffer) {
  auto a = runsOf({5, 5.1, 5.2, 5.05}), b = runsOf({5, 5.1, 5.2, 5.06}, 1);
  EXPECT_TRUE(compare(a, b, {})->differing.empty());
  for (Report& run : a) run.environment.members[0].host.hostname = "n";
  for (Report& run : b) run.environment.members[0].host.hostname = "m";
  EXPECT_EQ(compare(a, b, {})->differing, std::vector<std::string>{"hosts: A n, B m"});
  for (Report& run : b) run.environment.members[0].host = a[0].environment.members[0].host;
  for (Report& run : b) run.environment.members[0].host.boot_id = "0123456789";
  EXPECT_EQ(compare(a, b, {})->differing,
            std::vector<std::string>{"hosts: A n (boot ), B n (boot 01234567)"});
}

TEST(Compare, RunsThatDidNotTakeTurnsGiveNoAnswer) {
  const auto a = runsOf({5, 5.1, 5.2, 5.05}), b = runsOf({10, 10.1, 10.2, 10.05}, 20);
  const auto found = compare(a, b, {.slower = 0.05});
  ASSERT_TRUE(found);
  EXPECT_EQ(found->rows[0].difference, Difference::kNotInTurns);
  EXPECT_EQ(found->evidence, SampleEvidence::kNotInTurns);
  EXPECT_FALSE(found->ok());
  EXPECT_EQ(compare(a, b, {.across_time = true})->rows[0].difference, Difference::kFaster);
}

TEST(Compare, TheRatioIsThatOfThePrintedMedians) {
  // The median of all sixteen ratios would be different.
  const auto found = compare(runsOf({10, 11, 15, 16}), runsOf({9, 9.5, 20, 21}, 1), {});
  ASSERT_TRUE(found);
  const RowComparison& one = found->rows[0];
  EXPECT_DOUBLE_EQ(one.a_gb_per_s, 13);
  EXPECT_DOUBLE_EQ(one.b_gb_per_s, 14.75);
  EXPECT_DOUBLE_EQ(one.rate->ratio, 14.75 / 13);
}

TEST(Compare, AnEffectBelowTheLeastEffectIsNotReported) {
  const auto a = runsOf({10, 10.001, 10.002, 10.003}), b = runsOf({9.95, 9.951, 9.952, 9.953}, 1);
  EXPECT_EQ(compare(a, b, {})->rows[0].difference, Difference::kNoneSeen) << "0.5 % slower";
  EXPECT_EQ(compare(a, b, {.least_effect = 0.001})->rows[0].difference, Difference::kSlower);
  EXPECT_EQ(compare(b, a, {.least_effect = 0.001})->rows[0].difference, Difference::kFaster);
}

TEST(Compare, ARowThatBecameInvalidIsNotOk) {
  Row broken = row(1, 20);
  broken.verdict = Verdict::kCorrupt;
  broken.why = "block 3";
  const auto found = compared(report({row(1, 10)}), report({broken}));
  EXPECT_EQ(found.rows[0].difference, Difference::kUnusable);
  EXPECT_EQ(found.rows[0].note, "B is corrupt: block 3");
  EXPECT_FALSE(found.ok());
  EXPECT_TRUE(compared(report({broken}), report({row(1, 10)})).ok());
}

TEST(Compare, OtherMachinesAndSettingsAreNamed) {
  const Report a = report({row(1, 1)});
  Report b = a;
  b.environment.members[0].host.cores = 8;
  b.environment.fingerprint = fingerprintOf(b.environment.members);
  const auto machines = fourOfEach(a, b, {});
  ASSERT_FALSE(machines);
  EXPECT_NE(machines.error().text().find("cores: A 4, B 8"), std::string::npos);
  EXPECT_NE(machines.error().text().find("--across-machines"), std::string::npos);
  EXPECT_EQ(compared(a, b, {.across_machines = true}).differing.size(), 1U);

  b = a;
  b.settings[0].value = "off";
  b.settings[1].value = "b.json";
  b.agent = {{"sockets", "4"}, {"name", "y"}};
  const auto settings = compare({a}, {b}, {});
  ASSERT_FALSE(settings);
  EXPECT_NE(settings.error().text().find("agent.sockets: A 1, B 4; verify: A full, B off;"),
            std::string::npos)
      << settings.error().text();
  EXPECT_EQ(compared(a, b, {.across_settings = true}).differing.size(), 2U);
  b = a;
  b.settings.push_back({"rows", "tcp/4096x1"});
  b.agent.push_back({"backends", "tcp"});
  EXPECT_TRUE(compare({a}, {b}, {})) << "which rows there are, the rows say themselves";
  b = a;
  b.environment = {};
  EXPECT_FALSE(compare({a}, {b}, {}));
}

TEST(Compare, AcrossSettingsRowsOfDifferentBackendsAreCompared) {
  Row other = row(1, 20);
  other.backend = "local";
  EXPECT_FALSE(compare({report({row(1, 10)})}, {report({other})}, {}));
  const auto found = compared(report({row(1, 10)}), report({other}), {.across_settings = true});
  ASSERT_EQ(found.rows.size(), 1U);
  EXPECT_EQ(found.rows[0].b.backend, "local");
  Row ours = row(1, 10);
  ours.memory = "allocate";
  other.memory = "DRAM";  // raw tools print this word
  EXPECT_TRUE(compare({report({ours})}, {report({other})}, {.across_settings = true}));
  Report raw = report({other});
  raw.agent.clear();
  raw.version = "ib_write_bw";
  EXPECT_EQ(compared(report({ours}), raw, {.across_settings = true}).differing,
            std::vector<std::string>{
                "B is output of ib_write_bw, which does not name the settings of A"});
  other.memory = "VRAM";
  EXPECT_FALSE(compare({report({ours})}, {report({other})}, {.across_settings = true}));
}

TEST(Compare, AcrossSettingsPipelinesWithOtherFilesAreCompared) {
  const auto loaded = [](const std::string& file, double rate) {
    Row out = row(1, rate);
    out.kind = PipelineRow{.pipeline = "file:" + file + ",host", .stages = {{.name = "load"}}};
    return report({out});
  };
  EXPECT_FALSE(compare({loaded("/a", 10)}, {loaded("/b", 20)}, {}));
  EXPECT_EQ(compared(loaded("/a", 10), loaded("/b", 20), {.across_settings = true}).rows.size(),
            1U);
}

TEST(Compare, EachRunGivesOneFigureAndItsPartsGiveNone) {
  // The parts of each run agree; the runs do not.
  const auto found = compare(runsOf({10, 12, 8, 11}), runsOf({9.5, 7.5, 11.5, 9}, 1), {});
  ASSERT_TRUE(found);
  EXPECT_EQ(found->rows[0].rate->pairs, 16U);
  EXPECT_EQ(found->rows[0].difference, Difference::kNoneSeen);
}

}  // namespace
}  // namespace viaduct::measure
