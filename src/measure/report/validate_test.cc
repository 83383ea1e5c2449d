#include "measure/report/validate.h"

#include <gtest/gtest.h>

#include "measure/report/suite_testing.h"
#include "measure/result/row_testing.h"
#include "support/text.h"

namespace viaduct::measure {
namespace {

using testing::has;

Report soundReport() {
  const Row row = withCounts({.backend = "tcp", .block_size = 65536, .batch_size = 4}, {2, 3, 4});
  Report out{.version = "1",
             .environment = {.members = {{.host = {.hostname = "a", .cores = 2}}}},
             .settings = {{"num_threads", "1"}, {"verify", "off"}},
             .rows = {row},
             .conclusion = {"tcp: 3 GB/s, with no known ceiling"}};
  out.environment.fingerprint = fingerprintOf(out.environment.members);
  return out;
}

// Edits a sound report, and returns the fields that then contradict other fields.
template <class Edit>
std::string fieldsAfter(Edit edit) {
  Report report = soundReport();
  edit(report);
  std::string out;
  for (const Contradiction& one : contradictionsIn(report)) out += one.field + " ";
  return out;
}

TEST(Validate, ASoundReportHasNoContradiction) {
  EXPECT_EQ(fieldsAfter([](Report&) {}), "");
  EXPECT_TRUE(checkResult({soundReport()}, "a.json"));
}

TEST(Validate, AnEditedRateIsNamedWithItsRule) {
  Report report = soundReport();
  *report.rows[0].gb_per_s *= 50;
  const auto found = contradictionsIn(report);
  ASSERT_FALSE(found.empty());
  EXPECT_EQ(found[0].field, "rows[0].gb_per_s");
  EXPECT_TRUE(has(found[0].text, "150, but 3 follows: counts.streams is 1: median"))
      << found[0].text;
  const Status refused = checkResult({report}, "a.json");
  ASSERT_FALSE(refused);
  for (const char* part : {"a.json", "rows[0].gb_per_s", "viaduct validate"})
    EXPECT_TRUE(has(refused.error().text(), part)) << refused.error().text();
}

TEST(Validate, CountsThatWereEditedContradictTheFigures) {
  EXPECT_TRUE(has(fieldsAfter([](Report& r) { r.rows[0].counts->repeats[0].whole.bytes *= 50; }),
                  "counts.repeats[]"));
  EXPECT_TRUE(has(fieldsAfter([](Report& r) { r.rows[0].counts->members[0].timed += 1; }),
                  "rows[0].iterations"));
  EXPECT_TRUE(has(fieldsAfter([](Report& r) { r.rows[0].counts->latency_ns->sum *= 50; }),
                  "rows[0].latency_us.mean"));
  EXPECT_TRUE(has(fieldsAfter([](Report& r) { r.rows[0].counts->latency_ns->buckets = "1xa"; }),
                  "counts.latency_ns"));
}

TEST(Validate, FieldsThatHaveToAgreeAreCompared) {
  EXPECT_TRUE(
      has(fieldsAfter([](Report& r) { r.rows[0].verdict = Verdict::kUnproven; }), "verdict"));
  EXPECT_TRUE(
      has(fieldsAfter([](Report& r) { r.rows[0].path[0].proven = Proven::kNo; }), "verdict"));
  EXPECT_TRUE(has(fieldsAfter([](Report& r) { r.rows[0].path[0].bytes *= 2; }), "path[].bytes"));
  EXPECT_TRUE(
      has(fieldsAfter([](Report& r) { r.settings[0].value = "8"; }), "settings.num_threads"));
  EXPECT_TRUE(has(fieldsAfter([](Report& r) { r.environment.members[0].host.cores = 64; }),
                  "environment.fingerprint"));
  EXPECT_TRUE(
      has(fieldsAfter([](Report& r) { r.conclusion[0] = "tcp: 150 GB/s"; }), "conclusion[0]"));
}

TEST(Validate, MissingCountsAreNamed) {
  EXPECT_EQ(fieldsAfter([](Report& r) { r.rows[0].counts.reset(); }), "rows[0].counts ");
  EXPECT_EQ(fieldsAfter([](Report& r) { r.rows[0] = {.verdict = Verdict::kFailed, .why = "no"}; }),
            "")
      << "a failed row has no figures";
  EXPECT_EQ(fieldsAfter([](Report& r) {
              r.version = "nixlbench";
              r.rows[0].counts.reset();
            }),
            "")
      << "other tools report no counts";
}

TEST(Validate, RowsOfASuiteAreChecked) {
  Suite suite = someSuite(4);
  suite.environment.fingerprint = fingerprintOf(suite.environment.members);
  for (SuiteRun& run : suite.runs)
    for (Row& row : run.rows) row = withCounts({.backend = "tcp", .block_size = 256}, {1, 2, 3});
  EXPECT_TRUE(contradictionsIn(suite).empty());
  *suite.runs[2].rows[0].gb_per_s *= 1.5;
  ASSERT_FALSE(contradictionsIn(suite).empty());
  EXPECT_EQ(contradictionsIn(suite)[0].field, "runs[2].rows[0].gb_per_s");
}

}  // namespace
}  // namespace viaduct::measure
