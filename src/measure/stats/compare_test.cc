#include "measure/stats/compare.h"

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

Comparison compared(const Report& a, const Report& b, const CompareOptions& options = {}) {
  auto out = compare({a}, {b}, options);
  EXPECT_TRUE(out) << out.error().text();
  return out ? *std::move(out) : Comparison{};
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
  EXPECT_NE(found.only_a[0].find("1 x 2,"), std::string::npos) << found.only_a[0];
  ASSERT_EQ(found.only_b.size(), 1U);
  EXPECT_NE(found.only_b[0].find("tcp read"), std::string::npos) << found.only_b[0];
  EXPECT_FALSE(compare({report({row(1, 1)})}, {report({row(2, 1)})}, {}));
}

TEST(Compare, ByPlaceAnythingMayDifferButTheBlockSize) {
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
  EXPECT_FALSE(compare({report({row(1, 10)})}, {report({row(2, 10)})}, by_place));
}

TEST(Compare, OnlyWhatIsSureFails) {
  const CompareOptions five{.slower = 0.05};
  const auto sure = compared(report({row(1, 10)}), report({row(1, 9)}), five);
  EXPECT_TRUE(sure.rows[0].too_slow);
  EXPECT_FALSE(sure.ok());
  const auto little = compared(report({row(1, 10)}), report({row(1, 9.8)}), five);
  EXPECT_EQ(little.rows[0].difference, Difference::kSlower);
  EXPECT_FALSE(little.rows[0].too_slow || little.rows[0].perhaps_slow);
  EXPECT_TRUE(little.ok());
  const auto noisy = compared(report({row(1, 10, 0.3)}), report({row(1, 9, 0.3)}), five);
  EXPECT_FALSE(noisy.rows[0].too_slow);
  EXPECT_TRUE(noisy.rows[0].perhaps_slow);
  EXPECT_TRUE(noisy.ok());
}

TEST(Compare, TooFewPartsGiveNoAnswer) {
  Row few = row(1, 5);
  few.gb_per_s_parts = {5};
  const auto found = compared(report({row(1, 10)}), report({few}), {.slower = 0.05});
  EXPECT_EQ(found.rows[0].difference, Difference::kUnknown);
  EXPECT_NEAR(found.rows[0].rate->ratio, 0.5, 0.01);
  EXPECT_TRUE(found.rows[0].perhaps_slow);
}

TEST(Compare, ARowThatBrokeIsNotOk) {
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
  const auto machines = compare({a}, {b}, {});
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

TEST(Compare, AcrossSettingsOtherBackendsMayMeet) {
  Row other = row(1, 20);
  other.backend = "local";
  EXPECT_FALSE(compare({report({row(1, 10)})}, {report({other})}, {}));
  const auto found = compared(report({row(1, 10)}), report({other}), {.across_settings = true});
  ASSERT_EQ(found.rows.size(), 1U);
  EXPECT_EQ(found.rows[0].b.backend, "local");
}

TEST(Compare, RunsAreFiguresWhenThereAreEnough) {
  // Each run is very sure of itself, but they do not agree.
  const std::vector<Report> a{report({row(1, 10, 0.001)}), report({row(1, 12, 0.001)}),
                              report({row(1, 8, 0.001)}), report({row(1, 11, 0.001)})};
  const std::vector<Report> b{report({row(1, 9.5, 0.001)}), report({row(1, 7.5, 0.001)}),
                              report({row(1, 11.5, 0.001)}), report({row(1, 9, 0.001)})};
  const auto found = compare(a, b, {});
  ASSERT_TRUE(found);
  EXPECT_EQ(found->rows[0].rate->pairs, 16U);
  EXPECT_EQ(found->rows[0].difference, Difference::kNoneSeen);
  const auto three = compare({a[0], a[1], a[2]}, {b[0], b[1], b[2]}, {});
  EXPECT_EQ(three->rows[0].rate->pairs, 225U) << "their parts together";
}

}  // namespace
}  // namespace viaduct::measure
