#include "measure/result/csv.h"

#include <gtest/gtest.h>

#include <algorithm>

namespace viaduct::measure {
namespace {

TEST(Csv, ARowHasAllItsFigures) {
  const Row row{.backend = "tcp",
                .op = OpKind::kRead,
                .block_size = 4096,
                .batch_size = 64,
                .memory = "malloc",
                .iterations = 10,
                .seconds = 0.5,
                .gb_per_s = 3.25,
                .gb_per_s_spread = 0.125,
                .latency_us = Latency{1, 2, 3, 3.5, 4, 5, 6},
                .tx_us = MeanP99{7, 9.5},
                .cpu_s = CpuSeconds{1, 2},
                .kind = Operation{4080, 12.5, 0.375, 0.25, 0},
                .path = {{"tcp", "socket", "eth0", 100, 2, Proven::kYes}},
                .ceiling = Ceiling{"link eth0", 12.5, 26},
                .verified = Verified::kFull,
                .verdict = Verdict::kCorrupt,
                .why = "block 3, \"stale\""};
  EXPECT_EQ(csvHead(),
            "backend,op,scheme,block_size,batch_size,threads,pipeline_depth,initiators,targets,"
            "bidirectional,memory,iterations,seconds,gb_per_s,gb_per_s_spread,latency_mean_us,"
            "latency_p50_us,latency_p90_us,latency_p99_us,latency_p99_9_us,latency_max_us,"
            "prep_mean_us,prep_p99_us,post_mean_us,post_p99_us,tx_mean_us,tx_p99_us,cpu_s_per_gb,"
            "cpu_initiators_s,cpu_targets_s,completions_per_s,rate_asked_per_s,rate_reached_per_s,"
            "background_gb_per_s,background_longest_gap_ms,"
            "operation_size,operation_us,algbw_gb_per_s,busbw_gb_per_s,operation_wrong,"
            "ceiling,ceiling_gb_per_s,ceiling_percent,path,verified,verdict,why,remark\n");
  EXPECT_EQ(
      csvLine(row),
      "tcp,read,pairwise,4096,64,1,1,1,1,false,malloc,10,0.5,3.25,0.125,1,2,3,4,5,6,,,,,7,9.5,"
      ",1,2,,,,,,4080,12.5,0.375,0.25,0,link eth0,12.5,26,tcp/socket eth0 bytes=100 ops=2 "
      "proven=yes,full,corrupt,"
      "\"block 3, \"\"stale\"\"\",\n");
}

TEST(Csv, MissingFiguresAreEmptyFields) {
  const std::string head = csvHead(), line = csvLine(Row{.backend = "x"});
  EXPECT_EQ(std::count(head.begin(), head.end(), ','), std::count(line.begin(), line.end(), ','));
  EXPECT_EQ(line,
            "x,write,pairwise,0,1,1,1,1,1,false,,0,0,,,,,,,,,,,,,,,,,,,,,,,,,,,,,,,,off,ok,,\n");
}

}  // namespace
}  // namespace viaduct::measure
