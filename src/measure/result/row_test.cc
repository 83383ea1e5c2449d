#include "measure/result/row.h"

#include <gtest/gtest.h>

#include <limits>
#include <nlohmann/json.hpp>

#include "measure/result/row_testing.h"

namespace viaduct::measure {
namespace {

Row fullRow() {
  return {
      .run = "0123",
      .backend = "tcp",
      .op = OpKind::kRead,
      .scheme = "tp",
      .block_size = 4096,
      .batch_size = 64,
      .threads = 2,
      .pipeline_depth = 3,
      .initiators = 4,
      .targets = 5,
      .bidirectional = true,
      .memory = "malloc",
      .copied_by = "kernel",
      .iterations = 1000,
      .seconds = 1.5,
      .gb_per_s = 3.25,
      .gb_per_s_parts = {3.0, 3.25, 3.5},
      .gb_per_s_spread = 0.125,
      .latency_us = Latency{1, 2, 3, 3.5, 4, 5, 6},
      .prep_us = MeanP99{0.5, 1},
      .post_us = MeanP99{0.25, 2},
      .tx_us = MeanP99{7, 9},
      .cpu_s_per_gb = 0.5,
      .cpu_s = CpuSeconds{1, 2},
      .cores_busy = 2.5,
      .cores_others = 0.75,
      .completions_per_s = 1234.5,
      .rate = OpenLoop{1000, 999.5, "poisson"},
      .background = BackgroundTraffic{1 << 20, 3.5, 12.25},
      .pairs = {{0, 1, 1.5, Latency{1, 1, 1, {}, 1, 1, 1}}, {2, 3, {}, {}, {{2, 0.5}, {3, 0.5}}}},
      .devices = {{"initiator", 0, "GPU 0 (A)", 1.5},
                  {"initiator", 1, "GPU 1 (A)", 1.75, {{4, 0.5}}}},
      .scaling = Scaling{2, 1.625, 1.0, 0.875},
      .kind = Operation{4080, 12.5, 0.375, 0.25, 2, 8160, 4080},
      .path = {{"tcp", "socket", "lo", 262144, 64, Proven::kYes, 0, 2, 1, 4096}},
      .proof = "lo counted 262 kB",
      .ceiling = Ceiling{"link eth0", 12.5, 26},
      .ceiling_unknown = "the rate of a GPU",
      .verified = Verified::kSampled,
      .verdict = Verdict::kCorrupt,
      .why = "block 3",
      .counts = RowCounts{.streams = 2,
                          .echo = true,
                          .all_checked = true,
                          .checking_s = 0.5,
                          .repeats = {{{100, 0.5}, {{60, 0.25}, {40, 0.25}}}},
                          .alone = TimedBytes{10, 0.125},
                          .members = {{.initiator = true,
                                       .in_process = 2,
                                       .timed = 3,
                                       .timed_bytes = 30,
                                       .transfers = 4,
                                       .bytes = 40,
                                       .background = 5,
                                       .background_gb_per_s = 0.5,
                                       .background_gap_s = 0.25,
                                       .checks = 2,
                                       .missed = 1,
                                       .wrong = true,
                                       .ops = 6,
                                       .words = 7,
                                       .cpu_s = 0.5,
                                       .counted_s = 1,
                                       .machine_cpu_s = 1.5,
                                       .machine_idle_s = 0.75,
                                       .processors = 2,
                                       .clock_s = 1.25,
                                       .second_clock_s = 1.5},
                                      {.host = 1}},
                          .latency_ns = Distribution{1, 9, 12, "1x2 3x1"},
                          .prep_ns = Distribution{2, 2, 2, "2x1"},
                          .devices = {{"a", "lo", 100, {}, 0.5, 1.5}},
                          .payload = {{"a", "lo", false, 100, 1, 99}}}};
}

TEST(Rows, ReadBackAsTheyWereWritten) {
  for (const Row& row : {fullRow(), Row{}}) {
    const auto read = rowFromJson(toJson(row));
    ASSERT_TRUE(read) << read.error().text();
    EXPECT_EQ(*read, row);
  }
}

TEST(Rows, OlderFilesHaveNoP95) {
  auto json = nlohmann::json::parse(toJson(fullRow()));
  EXPECT_EQ(json.at("latency_us").at("p95"), 3.5);
  json.at("latency_us").erase("p95");
  const auto read = rowFromJson(json.dump());
  ASSERT_TRUE(read) << read.error().text();
  EXPECT_EQ(read->latency_us->p95, std::nullopt);
  EXPECT_EQ(read->latency_us->p99, 4);
}

TEST(Rows, MissingFiguresAreLeftOut) {
  const auto json = nlohmann::json::parse(toJson(Row{}));
  for (const char* key : {"gb_per_s", "gb_per_s_parts", "latency_us", "cpu_s_per_gb", "cpu_s",
                          "prep_us", "rate", "background", "ceiling", "pairs", "why"})
    EXPECT_FALSE(json.contains(key)) << key;
  Row odd = fullRow();
  odd.gb_per_s = std::numeric_limits<double>::infinity();
  odd.latency_us->p99 = std::numeric_limits<double>::quiet_NaN();
  const auto read = rowFromJson(toJson(odd));
  ASSERT_TRUE(read) << read.error().text();
  EXPECT_FALSE(read->gb_per_s.has_value());
  EXPECT_FALSE(read->latency_us.has_value());
}

TEST(Rows, EveryVerdictHasAName) {
  for (int i = 0; i <= static_cast<int>(Verdict::kFailed); ++i) {
    const auto verdict = static_cast<Verdict>(i);
    EXPECT_EQ(base::valueOf(kVerdicts, verdictName(verdict)), verdict) << verdictName(verdict);
    EXPECT_EQ(isGood(verdict), verdict == Verdict::kOk || verdict == Verdict::kUnproven);
  }
  EXPECT_FALSE(base::valueOf(kVerdicts, "?"));
}

// Makes one field of a valid row wrong, and expects an error about it.
TEST(Rows, AWrongFieldIsNamedByItsPath) {
  const std::pair<const char*, std::pair<nlohmann::json, const char*>> cases[] = {
      {"/block_size", {-1, "block_size is -1, not a whole number from 0"}},
      {"/block_size", {1.5, "block_size is 1.5, not a whole number"}},
      {"/batch_size", {5'000'000'000, "batch_size is 5000000000, not a number below 2^32"}},
      {"/gb_per_s", {"fast", "gb_per_s is \"fast\", not a number"}},
      {"/gb_per_s", {-3, "gb_per_s is -3, not a number from 0"}},
      {"/gb_per_s", {nullptr, "gb_per_s is null, not a number"}},
      {"/gb_per_s_parts/1", {true, "gb_per_s_parts[1] is true"}},
      {"/latency_us/p50", {"1", "latency_us.p50 is \"1\""}},
      {"/latency_us", {3, "latency_us is 3, not an object"}},
      {"/path", {3, "path is 3, not a list"}},
      {"/path/0/device", {3, "path[0].device is 3, not text"}},
      {"/path/0/proven", {"maybe", "path[0].proven \"maybe\" is none of yes, no, unproven"}},
      {"/op", {"push", "op \"push\" is none of write, read"}},
      {"/verdict", {"great", "verdict \"great\" is none of ok, invalid"}},
      {"/bidirectional", {1, "bidirectional is 1, not true or false"}},
  };
  for (const auto& [path, change] : cases) {
    auto json = nlohmann::json::parse(toJson(fullRow()));
    json[nlohmann::json::json_pointer(path)] = change.first;
    const auto read = rowFromJson(json.dump());
    ASSERT_FALSE(read) << path;
    EXPECT_EQ(read.error().detail.rfind(change.second, 0), 0U) << read.error().text();
  }
}

TEST(Rows, AMissingFieldIsNamedByItsPath) {
  auto json = nlohmann::json::parse(toJson(fullRow()));
  json["latency_us"].erase("p99");
  EXPECT_EQ(rowFromJson(json.dump()).error().detail, "latency_us.p99 is missing");
  json.erase("backend");
  EXPECT_EQ(rowFromJson(json.dump()).error().detail, "backend is missing");
}

TEST(Rows, JsonThatIsNoRowIsRefused) {
  for (const char* text : {"", "{", "{}", "[]", "3", "null", R"({"backend": 3})", "\xff\xfe"})
    EXPECT_FALSE(rowFromJson(text)) << text;
  EXPECT_NE(rowFromJson("{\"backend\": ").error().text().find("ends too early"), std::string::npos);
}

TEST(Rows, UnknownFieldsAreIgnored) {
  auto json = nlohmann::json::parse(toJson(fullRow()));
  json["colour"] = "red";
  json["path"][0]["hops"] = {1, 2};
  const auto read = rowFromJson(json.dump());
  ASSERT_TRUE(read);
  EXPECT_EQ(*read, fullRow());
}

}  // namespace
}  // namespace viaduct::measure
