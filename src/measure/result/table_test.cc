#include "measure/result/table.h"

#include <gtest/gtest.h>

namespace viaduct::measure {
namespace {

bool has(const std::string& text, const std::string& part) {
  return text.find(part) != std::string::npos;
}

TEST(Table, ALineSaysItAll) {
  Row row{.backend = "local",
          .block_size = 4096,
          .batch_size = 64,
          .gb_per_s = 12.345,
          .gb_per_s_spread = 0.02,
          .latency_us = Latency{.p50 = 21.2, .p99 = 300.4},
          .cpu_s_per_gb = 0.0815,
          .path = {{{"local", "mapped", "copy", 262144, 64}}}};
  const std::string line = tableLine(row);
  for (const char* part : {"local", "write", "4.0 KiB", " 64 ", "12.3 ", " 2%", " 21.2 ", " 300 ",
                           "0.08", "local/mapped 256.0 KiB in 64 ops"})
    EXPECT_TRUE(has(line, part)) << part << " is not in " << line;
  row.verdict = Verdict::kCorrupt;
  row.why = "block 3 is wrong";
  EXPECT_TRUE(has(tableLine(row), "CORRUPT: block 3 is wrong"));
}

TEST(Table, AFailureShowsNoFigures) {
  const Row row{.backend = "tcp", .block_size = 1, .verdict = Verdict::kFailed, .why = "no route"};
  EXPECT_TRUE(has(tableLine(row), "FAILED: no route"));
  EXPECT_FALSE(has(tableLine(row), "0.00"));
}

}  // namespace
}  // namespace viaduct::measure
