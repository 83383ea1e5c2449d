#include "measure/result/kv_table.h"

#include <gtest/gtest.h>

#include "measure/result/row_testing.h"
#include "support/text.h"

namespace viaduct::measure {
namespace {

Row rowOf(bool bulk, std::uint32_t trial, double p50) {
  Row row{.backend = "tcp", .block_size = 1'000'000, .batch_size = 2};
  row.latency_us = Latency{.mean = p50, .p50 = p50, .p95 = p50 * 2, .max = p50 * 3, .min = p50 / 2};
  row.kind = KvWorkload{.model = "Llama-3.1-8B",
                        .tokens = 8192,
                        .source_block = 16,
                        .destination_block = 64,
                        .source_tp = 4,
                        .destination_tp = 8,
                        .order = "hnd",
                        .arrangement = "apart",
                        .bulk = bulk,
                        .trial = trial,
                        .trials = 2,
                        .table_sets = 4,
                        .descriptors = 100,
                        .runs = 50,
                        .checked_words = 7};
  row.prep_us = row.post_us = MeanP99{.mean = 12.5};
  return row;
}

TEST(KvTable, PrintsOneLineForAllTrialsOfAPoint) {
  KvTable table(80);
  EXPECT_EQ(table.add(rowOf(false, 0, 1000)), "");
  EXPECT_EQ(table.add(rowOf(true, 0, 500)), "");
  EXPECT_EQ(table.add(rowOf(true, 1, 800)), "");
  const std::string out = table.add(rowOf(false, 1, 2000));
  EXPECT_NE(out.find("tcp push, Llama-3.1-8B, TP 4 to 8, hnd, apart"), std::string::npos) << out;
  // The medians of 2 and 1 GB/s (paged), of 4 and 2.5 GB/s (bulk), and of the shares 0.5 and 0.4.
  EXPECT_NE(out.find("8192   16>64     2    1.50    3.25  45.0%"), std::string::npos) << out;
  EXPECT_NE(out.find("100 pages, posted as 50 runs"), std::string::npos) << out;
  EXPECT_NE(out.find("28 words checked"), std::string::npos) << out;
}

TEST(KvTable, NamesTheRowThatCannotBeUsed) {
  KvTable table(80);
  Row wrong = rowOf(false, 0, 1000);
  wrong.as<KvWorkload>()->trials = 1;
  wrong.verdict = Verdict::kCorrupt;
  wrong.why = "layer 3 is wrong";
  table.add(wrong);
  Row bulk = rowOf(true, 0, 500);
  bulk.as<KvWorkload>()->trials = 1;
  const std::string out = table.add(bulk);
  EXPECT_NE(out.find("^ CORRUPT: layer 3 is wrong"), std::string::npos) << out;
}

TEST(KvTable, NoLineIsLongerThan80Columns) {
  Row paged = rowOf(false, 0, 123456789), bulk = rowOf(true, 0, 123456789);
  for (Row* row : {&paged, &bulk}) {
    row->as<KvWorkload>()->trials = 1;
    row->as<KvWorkload>()->model = "meta-llama/Llama-3.1-405B-with-a-long-name";
    row->as<KvWorkload>()->tokens = 1 << 20;
    row->as<KvWorkload>()->source_block = 128;
    row->as<KvWorkload>()->destination_block = 1024;
    row->batch_size = 12345;
    row->remark = "a remark of many words that does not fit into the eighty columns of a line";
  }
  KvTable table(80);
  table.add(paged);
  const std::string out = table.add(bulk);
  EXPECT_TRUE(testing::has(out, "1048576 128>1024 12345 ")) << out;
  EXPECT_LE(testing::widestLine(out), 80U) << out;
}

TEST(KvTable, TheLinesOfAReplayAreWrappedBehindTheirNames) {
  Row row = rowOf(false, 0, 123456789);
  row.latency_us->p99 = 1234567890;
  KvReplayed& replay = row.as<KvWorkload>()->replay.emplace(KvReplayed{.requests = 123456});
  replay.ttft_us = row.latency_us;
  replay.prefill_tokens_per_s = 1234567;
  replay.of_ttft = 0.125;
  const std::string out = KvTable(80).add(row);
  EXPECT_TRUE(testing::has(out, "  TTFT      p50 ")) << out;
  EXPECT_LE(testing::widestLine(out), 80U) << out;
}

}  // namespace
}  // namespace viaduct::measure
