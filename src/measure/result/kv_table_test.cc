#include "measure/result/kv_table.h"

#include <gtest/gtest.h>

#include "measure/result/row_testing.h"

namespace viaduct::measure {
namespace {

Row rowOf(bool bulk, std::uint32_t trial, double p50) {
  Row row{.backend = "tcp", .block_size = 1'000'000, .batch_size = 2};
  row.latency_us = Latency{.mean = p50, .p50 = p50, .min = p50 / 2, .p95 = p50 * 2, .max = p50 * 3};
  row.kv = KvWorkload{.model = "Llama-3.1-8B",
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
  KvTable table;
  EXPECT_EQ(table.add(rowOf(false, 0, 1000)), "");
  EXPECT_EQ(table.add(rowOf(true, 0, 500)), "");
  EXPECT_EQ(table.add(rowOf(true, 1, 800)), "");
  const std::string out = table.add(rowOf(false, 1, 2000));
  EXPECT_NE(out.find("tcp push, Llama-3.1-8B, TP 4 to 8, hnd, apart"), std::string::npos) << out;
  // The median of 2 and 1 GB/s, of 4 and 2.5 GB/s, and of the shares 0.5 and 0.4.
  EXPECT_NE(out.find("8192   16>64     2    1.50    3.25  45.0%"), std::string::npos) << out;
  EXPECT_NE(out.find("100 pages, posted as 50 runs"), std::string::npos) << out;
  EXPECT_NE(out.find("28 words checked"), std::string::npos) << out;
}

TEST(KvTable, NamesTheRowThatCannotBeUsed) {
  KvTable table;
  Row wrong = rowOf(false, 0, 1000);
  wrong.kv->trials = 1;
  wrong.verdict = Verdict::kCorrupt;
  wrong.why = "layer 3 is wrong";
  table.add(wrong);
  Row bulk = rowOf(true, 0, 500);
  bulk.kv->trials = 1;
  const std::string out = table.add(bulk);
  EXPECT_NE(out.find("^ CORRUPT: layer 3 is wrong"), std::string::npos) << out;
}

}  // namespace
}  // namespace viaduct::measure
