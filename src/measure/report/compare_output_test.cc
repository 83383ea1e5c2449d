#include "measure/report/compare_output.h"

#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "base/text_table.h"
#include "support/text.h"

namespace viaduct::measure {
namespace {

Comparison someComparison() {
  const Row a{.backend = "tcp", .block_size = 65536, .batch_size = 64, .gb_per_s = 10};
  Row b = a;
  b.gb_per_s = 9;
  RowComparison slow{.a = a,
                     .b = b,
                     .a_gb_per_s = 10,
                     .b_gb_per_s = 9,
                     .rate = RatioEstimate{.ratio = 0.9,
                                           .interval = Interval{0.88, 0.93},
                                           .effect = -1,
                                           .ahead = 0,
                                           .pairs = 25},
                     .p50 = 1.1,
                     .difference = Difference::kSlower,
                     .too_slow = true};
  RowComparison noisy = slow;
  noisy.too_slow = false;
  noisy.perhaps_slow = true;
  noisy.difference = Difference::kNoneSeen;
  return {.rows = {slow, noisy}, .only_a = {"tcp read 1"}, .differing = {"cores: A 4, B 8"}};
}

TEST(CompareOutput, TheTextNamesEachDifference) {
  const std::string text =
      compareText(someComparison(), {"a.json", "b.json"}, {.slower = 0.05}, base::kNoLimit);
  for (const char* part :
       {"A: a.json\nB: b.json\ndiffers: cores: A 4, B 8\n",
        "tcp      write  64 KiB     64   10.00   9.000  0.900   0.880..0.930   -1.00    1.100"
        "        -  TOO SLOW\n",
        "only in A: tcp read 1\n", "2 rows: 1 slower, 1 no difference seen\n",
        "TOO SLOW, by more than 5 % with 95 % confidence:\n  tcp write 64 x 64 KiB\n",
        "cannot tell whether slower by more than 5 %"})
    EXPECT_NE(text.find(part), std::string::npos) << part << "\nis not in\n" << text;
}

TEST(CompareOutput, TheTableFitsInto80Columns) {
  Comparison found = someComparison();
  found.rows[1].note =
      "a note of many words about the noise of both sides that needs two lines here";
  const auto table = [&] {
    const std::string text = compareText(found, {"a.json", "b.json"}, {}, 80);
    return text.substr(text.find("\n\n") + 2);
  };
  EXPECT_EQ(table().substr(0, table().find("\n\n")),
            "           A     B               95 %          p50 p99\n"
            " block  GB/s  GB/s   B/A     interval effect   B/A B/A B is\n"
            "backend: tcp, op: write, batch: 64\n"
            "64 KiB 10.00 9.000 0.900 0.880..0.930  -1.00 1.100   - TOO SLOW\n"
            "64 KiB 10.00 9.000 0.900 0.880..0.930  -1.00 1.100   - no difference seen\n"
            "         ^ a note of many words about the noise of both sides that needs two\n"
            "         lines here");
  RowComparison& row = found.rows[1];
  row.a.backend = "staged", row.b.backend = "object";
  row.b.op = OpKind::kRead;
  row.a.batch_size = 1, row.b.batch_size = 65536;
  row.a.block_size = 1023 << 10U;
  row.a_gb_per_s = row.b_gb_per_s = 0.00012345;
  row.rate->interval = Interval{0.001, 123.456};
  row.p50 = row.p99 = 123.456;
  EXPECT_LE(testing::widestLine(table()), 80U) << table();
  EXPECT_TRUE(testing::has(table(), "backend: staged:object, op: write:read, batch: 1:65536\n"));
  EXPECT_TRUE(testing::has(table(), "\n         B is: no difference seen\n")) << table();
}

TEST(CompareOutput, ALongKindIsAHeadingAtAnyWidth) {
  Comparison found = someComparison();
  for (RowComparison& row : found.rows) {
    row.a.scheme = "kv-paged";
    row.a.kind = KvWorkload{.model = "Llama-3.1-70B-Instruct",
                            .tokens = 131072,
                            .order = "nhd",
                            .arrangement = "apart"};
  }
  found.rows[1].a.scheme = "kv-bulk";
  const std::string text = compareText(found, {"a", "b"}, {.slower = 0.05}, base::kNoLimit);
  EXPECT_LE(testing::widestLine(text), 80U) << text;
  for (const char* part : {"\nbackend: tcp, op: write, batch: 64, row: kv-paged, Llama-3.1-70B-",
                           "row: kv-bulk, ", "  tcp write 64 x 64 KiB, kv-paged, Llama"})
    EXPECT_TRUE(testing::has(text, part)) << part << "\n" << text;
}

TEST(CompareOutput, TheTextSaysThatNoRowIsSlower) {
  Comparison same = someComparison();
  for (RowComparison& row : same.rows) row.too_slow = row.perhaps_slow = false;
  EXPECT_NE(compareText(same, {"a", "b"}, {.slower = 0.05}, base::kNoLimit)
                .find("no row is slower by more than 5 %"),
            std::string::npos);
}

TEST(CompareOutput, TheTextSaysWhyRunsGiveNoAnswer) {
  Comparison few = someComparison();
  few.runs_a = 1, few.runs_b = 2;
  few.evidence = SampleEvidence::kTooFewRuns;
  for (RowComparison& row : few.rows) {
    row.too_slow = row.perhaps_slow = false;
    row.difference = Difference::kTooFewRuns;
    row.rate->interval.reset();
  }
  const std::string text = compareText(few, {"a", "b"}, {.slower = 0.05}, base::kNoLimit);
  EXPECT_NE(text.find("2 rows: 2 not enough runs\n"), std::string::npos) << text;
  EXPECT_NE(text.find("Not enough runs: A has 1 and B 2, and each side needs 4"), std::string::npos)
      << text;
  EXPECT_NE(text.find("--before"), std::string::npos) << text;
  EXPECT_EQ(text.find("no row is slower"), std::string::npos) << text;
  const std::string early = compareText(few, {"a", "b"}, {.by_place = true}, base::kNoLimit);
  EXPECT_NE(early.find("Not enough runs, because the comparison ended early: A has 1 and B 2"),
            std::string::npos);
  EXPECT_EQ(early.find("--before"), std::string::npos) << early;
  const auto json = nlohmann::json::parse(compareJson(few, {"a", "b"}));
  EXPECT_EQ(json.at("outcome"), "not enough runs");
  EXPECT_EQ(json.at("ok"), false);
  EXPECT_EQ(json.at("runs_b"), 2);
  EXPECT_FALSE(json.at("rows").at(0).contains("effect"));
  few.evidence = SampleEvidence::kNotInTurns;
  EXPECT_NE(compareText(few, {"a", "b"}, {}, base::kNoLimit).find("did not take turns"),
            std::string::npos);
}

TEST(CompareOutput, TheTextSaysHowManyRunsShowASmallDifference) {
  Comparison found = someComparison();
  found.runs_a = found.runs_b = 4;
  EXPECT_EQ(compareText(found, {"a", "b"}, {}, base::kNoLimit).find("needs about"),
            std::string::npos);
  found.rows[1].runs_needed = 24;
  const std::string text = compareText(found, {"a", "b"}, {}, base::kNoLimit);
  EXPECT_NE(text.find("a difference of 2 % needs about 24 runs of each side"), std::string::npos)
      << text;
  EXPECT_EQ(nlohmann::json::parse(compareJson(found, {"a", "b"})).at("runs_needed"), 24);
}

TEST(CompareOutput, JsonHasTheFigures) {
  const auto json = nlohmann::json::parse(compareJson(someComparison(), {"a.json", "b.json"}));
  EXPECT_EQ(json.at("format"), "viaduct-compare/1");
  EXPECT_EQ(json.at("ok"), false);
  EXPECT_EQ(json.at("outcome"), "worse");
  const auto& row = json.at("rows").at(0);
  EXPECT_EQ(row.at("ratio"), 0.9);
  EXPECT_EQ(row.at("interval_95").at(1), 0.93);
  EXPECT_EQ(row.at("difference"), "slower");
  EXPECT_FALSE(row.contains("p99_ratio"));
}

}  // namespace
}  // namespace viaduct::measure
