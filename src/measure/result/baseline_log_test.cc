#include "measure/result/baseline_log.h"

#include <gtest/gtest.h>

#include "measure/result/result_files.h"

namespace viaduct::measure {
namespace {

// The shape of each tool's output on a terminal, with invented figures.
constexpr auto kWriteBw = R"(
---------------------------------------------------------------------------------------
                    RDMA_Write BW Test
 Dual-port       : OFF		Device         : mlx5_3
 Number of qps   : 2		Transport type : IB
 Connection type : RC		Using SRQ      : OFF
 Link type       : Ethernet
 GID index       : 3
---------------------------------------------------------------------------------------
 local address: LID 0000 QPN 0x117f PSN 0x3a5e58
 GID: 00:00:00:00:00:00:00:00:00:00:255:255:10:00:106:07
---------------------------------------------------------------------------------------
 #bytes     #iterations    BW peak[MB/sec]    BW average[MB/sec]   MsgRate[Mpps]
 Conflicting CPU frequency values detected: 1496.133000 != 1529.788000. CPU Frequency is not max.
 4096       5000             9000.50            8000.00		   2.048000
 65536      5000             23330.12           23306.62		   0.372906
---------------------------------------------------------------------------------------
)";

Report onlyOne(std::string_view text) {
  const auto reports = reportsFrom(std::string(text), "log");
  EXPECT_TRUE(reports) << reports.error().text();
  if (!reports || reports->size() != 1) {
    ADD_FAILURE() << "not one report";
    return {.rows = {{}, {}}};
  }
  return reports->front();
}

std::string complaint(std::string_view text) {
  const auto reports = reportsFrom(std::string(text), "log");
  return reports ? "" : reports.error().text();
}

TEST(BaselineLog, PerftestCountsInMebibytes) {
  const Report report = onlyOne(kWriteBw);
  ASSERT_EQ(report.rows.size(), 2U);
  const Row& row = report.rows[1];
  EXPECT_EQ(row.backend, "ib_write_bw");
  EXPECT_EQ(row.op, OpKind::kWrite);
  EXPECT_EQ(row.block_size, 65536U);
  EXPECT_EQ(row.iterations, 5000U);
  EXPECT_EQ(row.threads, 2U);
  EXPECT_NEAR(*row.gb_per_s, 23306.62 * 1.048576 / 1000, 1e-9);
  ASSERT_EQ(row.path.size(), 1U);
  EXPECT_EQ(row.path[0].device, "mlx5_3");
  EXPECT_EQ(row.verdict, Verdict::kUnproven);
}

TEST(BaselineLog, PerftestMayCountInBits) {
  const Report report = onlyOne(
      "                    RDMA_Read Bidirectional BW Test\n"
      " #bytes     #iterations    BW peak[Gb/sec]    BW average[Gb/sec]   MsgRate[Mpps]\n"
      " 1048576    1000             0.00               392.00             0.046730\n");
  EXPECT_EQ(report.rows[0].backend, "ib_read_bw");
  EXPECT_EQ(report.rows[0].op, OpKind::kRead);
  EXPECT_TRUE(report.rows[0].bidirectional);
  EXPECT_DOUBLE_EQ(*report.rows[0].gb_per_s, 49);
}

TEST(BaselineLog, PerftestHasLatencies) {
  const Report report = onlyOne(
      "                    RDMA_Write Latency Test\n"
      " #bytes #iterations    t_min[usec]    t_max[usec]  t_typical[usec]    t_avg[usec]    "
      "t_stdev[usec]   99% percentile[usec]   99.9% percentile[usec]\n"
      " 8       1000          1.50           9.25         1.75     \t       1.80        \t0.10\t\t"
      "2.50                    4.00\n");
  const Row& row = report.rows[0];
  EXPECT_EQ(row.backend, "ib_write_lat");
  ASSERT_TRUE(row.latency_us);
  EXPECT_EQ(row.latency_us->p50, 1.75);
  EXPECT_EQ(row.latency_us->mean, 1.8);
  EXPECT_EQ(row.latency_us->p99, 2.5);
  EXPECT_EQ(row.latency_us->p99_9, 4);
  EXPECT_EQ(row.latency_us->max, 9.25);
  EXPECT_FALSE(row.latency_us->p90);
  EXPECT_FALSE(row.gb_per_s);
}

constexpr auto kUcxHead =
    "+--------------+--------------+------------------------------+---------------------+\n"
    "|              |              |       overhead (usec)        |   bandwidth (MB/s)  |  message "
    "rate (msg/s) |\n"
    "|    Stage     | # iterations | 50.0%ile | average | overall |  average |  overall |  average "
    " "
    "|  overall  |\n"
    "+--------------+--------------+----------+---------+---------+----------+----------+\n";
constexpr auto kUcxRows =
    "[thread 0]              3696     20.942   270.420   270.420      231.12     231.12        "
    "3698 "
    "       3698\n"
    "Final:                 20000     17.684   826.683   259.202       75.60     241.12        "
    "1210 "
    "       3858\n";

TEST(BaselineLog, UcxsMessageSizeIsOutsideOfTheTable) {
  for (const std::string front :
       {"| Test:         get bandwidth                     |\n| Message size: 65536     |\n",
        "+ ucx_perftest 10.0.0.2 -t ucp_get -s 65536\n"}) {
    const Report report = onlyOne(front + kUcxHead + kUcxRows);
    ASSERT_EQ(report.rows.size(), 1U) << front;
    EXPECT_EQ(report.rows[0].backend, "ucx_perftest");
    EXPECT_EQ(report.rows[0].op, OpKind::kRead);
    EXPECT_EQ(report.rows[0].block_size, 65536U);
    EXPECT_NEAR(*report.rows[0].gb_per_s, 241.12 * 1.048576 / 1000, 1e-9);
  }
}

TEST(BaselineLog, UcxsSizeFollowsFromItsRates) {
  EXPECT_EQ(onlyOne(std::string(kUcxHead) + kUcxRows).rows[0].block_size, 65536U);
  // Too few digits to compute the size.
  EXPECT_NE(complaint(std::string(kUcxHead) + "Final: 20000 1.1 1.1 1.1 0.03 0.03 4550 3868\n")
                .find("without the size of its messages"),
            std::string::npos);
}

TEST(BaselineLog, ALatencyTestOfUcxHasNoRate) {
  std::string head = kUcxHead;
  head.replace(head.find("Stage"), 5, "Test ");
  const Report report =
      onlyOne("| Test:         put latency      |\n| Message size: 8   |\n" + head +
              "        20000     1.500   1.700   1.600   4.80   4.80  4550  3868\n");
  EXPECT_FALSE(report.rows[0].gb_per_s);
  EXPECT_EQ(report.rows[0].remark, "Half of a round trip: mean 1.6 us, median 1.5 us.");
}

TEST(BaselineLog, FabtestsShortenTheirNumbers) {
  const Report report = onlyOne(
      "$ fi_rma_bw -p efa -o read 10.0.0.1\n"
      "bytes   iters   total       time     MB/sec    usec/xfer   Mxfers/sec\n"
      "64      10k     625k        0.01s     45.71       1.40       0.71\n"
      "64k     10k     625m        0.06s  10922.67       6.00       0.17\n");
  ASSERT_EQ(report.rows.size(), 2U);
  EXPECT_EQ(report.rows[1].backend, "fi_rma_bw");
  EXPECT_EQ(report.rows[1].op, OpKind::kRead);
  EXPECT_EQ(report.rows[1].block_size, 65536U);
  EXPECT_EQ(report.rows[1].iterations, 10000U);
  EXPECT_NEAR(*report.rows[1].gb_per_s, 10.92267, 1e-9);
  EXPECT_EQ(report.rows[1].remark, "6 us each.");
}

constexpr auto kNcclHead =
    "# Collective test starting: all_reduce_perf\n"
    "#  Rank  0 Group  0 Pid 1668270 on node-1 device  0 [0000:53:00] NVIDIA H100\n"
    "#  Rank  1 Group  0 Pid 1563448 on node-2 device  0 [0000:53:00] NVIDIA H100\n"
    "#                                                              out-of-place                   "
    "    in-place          \n"
    "#       size         count      type   redop    root     time   algbw   busbw  #wrong     "
    "time "
    "  algbw   busbw  #wrong \n"
    "#        (B)    (elements)                               (us)  (GB/s)  (GB/s)             "
    "(us) "
    " (GB/s)  (GB/s)         \n";

TEST(BaselineLog, TheRateOfNcclIsItsBusBandwidth) {
  const Report report = onlyOne(
      kNcclHead + std::string("   536870912     134217728     float     sum      -1  14594.4   "
                              "36.79   64.39       0  13778.0   38.97   68.20       0\n"
                              "# Out of bounds values : 0 OK\n"
                              "# Avg bus bandwidth    : 66.295\n"));
  ASSERT_EQ(report.rows.size(), 1U);
  const Row& row = report.rows[0];
  EXPECT_EQ(row.backend, "all_reduce_perf");
  EXPECT_EQ(row.block_size, 536870912U);
  EXPECT_EQ(row.initiators, 2U);
  EXPECT_DOUBLE_EQ(*row.gb_per_s, 64.39);
  EXPECT_EQ(
      row.remark,
      "Bus bandwidth, out of place. 14594.4 us each; algorithm 36.79 GB/s; in place 68.2 GB/s.");
  EXPECT_EQ(row.verified, Verified::kFull);
}

TEST(BaselineLog, WrongValuesOfNcclMakeARowCorrupt) {
  const std::string head = kNcclHead;
  const Report wrong =
      onlyOne(head + "1024 256 float sum -1 35.49 0.03 0.05 7 33.42 0.03 0.06 0\n");
  EXPECT_EQ(wrong.rows[0].verdict, Verdict::kCorrupt);
  const Report unchecked =
      onlyOne(head + "1024 256 float sum -1 35.49 0.03 0.05 N/A 33.42 0.03 0.06 N/A\n");
  EXPECT_EQ(unchecked.rows[0].verdict, Verdict::kUnproven);
  EXPECT_EQ(unchecked.rows[0].verified, Verified::kOff);
}

// Output of examples/torch/collectives.py.
TEST(BaselineLog, CollectivesOfCpusAreRowsOfHostMemory) {
  const Report report = onlyOne(
      "# torch.distributed 1.13.0a0, gloo\n"
      "# Collective test starting: all_reduce_perf\n"
      "#  Rank  0 Group  0 Pid  17036 on     node-1 device cpu\n"
      "#  Rank  1 Group  0 Pid  17037 on     node-1 device cpu\n"
      "#       size         count      type   redop    root     time   algbw   busbw  #wrong\n"
      "#        (B)    (elements)                               (us)  (GB/s)  (GB/s)\n"
      "     1048576        262144     float     sum      -1   3303.9   0.317   0.317       0\n"
      "     4194304       1048576     float     sum      -1   4142.6   1.012   1.012       0\n"
      "# Avg bus bandwidth    : 0.6649\n");
  ASSERT_EQ(report.rows.size(), 2U);
  EXPECT_EQ(report.rows[0].backend, "all_reduce_perf");
  EXPECT_EQ(report.rows[0].memory, "DRAM");
  EXPECT_EQ(report.rows[0].initiators, 2U);
  EXPECT_EQ(report.rows[0].verified, Verified::kFull);
  EXPECT_DOUBLE_EQ(*report.rows[1].gb_per_s, 1.012);
}

// Two pods' logs with alternating lines, as `kubectl logs -l app=bench --prefix` prints them.
TEST(BaselineLog, LinesOfSeveralPodsMayAlternate) {
  std::string mixed;
  for (const char* line : {"                    RDMA_Write BW Test",
                           " #bytes #iterations BW peak[MB/sec] BW average[MB/sec] MsgRate[Mpps]",
                           " 65536 5000 1000.00 1000.00 0.016"})
    for (const char* pod : {"[pod/a/bench] ", "[pod/b/bench] ", "2026-11-24T02:52:23Z "})
      mixed += std::string("\x1b[32m") + pod + "\x1b[0m" + line + "\r\n";
  const auto reports = reportsFrom(mixed, "log");
  ASSERT_TRUE(reports) << reports.error().text();
  EXPECT_EQ(reports->size(), 3U);
  for (const Report& one : *reports) EXPECT_EQ(one.rows.size(), 1U);
}

TEST(BaselineLog, OneLogMayHoldSeveralTools) {
  const auto reports =
      reportsFrom(std::string(kWriteBw) + kNcclHead +
                      "1024 256 float sum -1 35.49 0.03 0.05 0 33.42 0.03 0.06 0\n" + kWriteBw,
                  "log");
  ASSERT_TRUE(reports) << reports.error().text();
  ASSERT_EQ(reports->size(), 3U);
  EXPECT_EQ((*reports)[0].rows.size(), 2U);
  EXPECT_EQ((*reports)[1].rows[0].backend, "all_reduce_perf");
  EXPECT_EQ((*reports)[2].rows[0].path[0].device, "mlx5_3");
}

TEST(BaselineLog, ARunMayBeRepeated) {
  std::string log = kWriteBw;
  std::string second = kWriteBw;
  second.replace(second.find("mlx5_3"), 6, "mlx5_4");
  const auto reports = reportsFrom(log + second, "log");
  ASSERT_TRUE(reports) << reports.error().text();
  ASSERT_EQ(reports->size(), 2U);
  EXPECT_EQ((*reports)[0].rows[0].path[0].device, "mlx5_3");
  EXPECT_EQ((*reports)[1].rows[0].path[0].device, "mlx5_4");
}

TEST(BaselineLog, ATruncatedLogKeepsItsCompleteRows) {
  const std::string log = kWriteBw;
  EXPECT_EQ(onlyOne(log.substr(0, log.find("23330.12"))).rows.size(), 1U);
  EXPECT_NE(complaint(log.substr(0, log.find(" 4096 "))).find("has no rows"), std::string::npos);
}

std::string iperf(const std::string& end) {
  return R"({"start": {"version": "iperf 3.12", "system_info": "Linux node-1",
    "timestamp": {"time": "Tue, 24 Nov 2026 02:52:23 GMT", "timesecs": 1795488743},
    "test_start": {"protocol": "TCP", "num_streams": 4, "blksize": 131072, "duration": 2,
                   "reverse": 1}},
    "intervals": [{"streams": [], "sum": {"seconds": 1.0, "bits_per_second": 8e9}},
                  {"streams": [], "sum": {"seconds": 1.0, "bits_per_second": 16e9}}],
    "end": )" +
         end + "}";
}

TEST(Iperf3, TheReceiversRateCounts) {
  const Report report = onlyOne(iperf(
      R"({"sum_sent": {"seconds": 2, "bits_per_second": 13e9},
          "sum_received": {"seconds": 2, "bits_per_second": 12e9},
          "cpu_utilization_percent": {"host_total": 50, "remote_total": 100}})"));
  EXPECT_EQ(report.version, "iperf 3.12");
  EXPECT_EQ(report.started, "2026-11-24T02:52:23Z");
  EXPECT_EQ(report.end, "complete");
  const Row& row = report.rows[0];
  EXPECT_EQ(row.backend, "iperf3");
  EXPECT_EQ(row.op, OpKind::kRead);
  EXPECT_EQ(row.block_size, 131072U);
  EXPECT_EQ(row.threads, 4U);
  EXPECT_DOUBLE_EQ(*row.gb_per_s, 1.5);
  EXPECT_EQ(row.gb_per_s_parts, (std::vector<double>{1, 2}));
  EXPECT_DOUBLE_EQ(*row.cpu_s_per_gb, 1);
}

TEST(Iperf3, AFailedRunSaysWhy) {
  EXPECT_NE(complaint(R"({"start": {"version": "iperf 3.12"}, "intervals": [], "end": {},
                          "error": "unable to connect to server: Connection refused"})")
                .find("Connection refused"),
            std::string::npos);
  EXPECT_NE(complaint(iperf("{}")).find("no result"), std::string::npos);
  EXPECT_NE(complaint(iperf(R"({"sum_received": {"seconds": 2}})")).find("bits_per_second"),
            std::string::npos);
}

}  // namespace
}  // namespace viaduct::measure
