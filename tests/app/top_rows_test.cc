// The figures of `viaduct top`, from metrics texts written by hand.
#include "viaduct/top_rows.h"

#include <gtest/gtest.h>

#include "base/text_table.h"
#include "support/text.h"

namespace viaduct::app {
namespace {

using namespace std::chrono_literals;

std::string textOf(const char* agent, int gb, int done, int fast, int slow) {
  const std::string id = std::string("{agent=\"") + agent + "\",pid=\"7\"";
  const auto line = [&](const char* name, const std::string& labels, const std::string& value) {
    return name + id + labels + "} " + value + "\n";
  };
  const std::string bytes = std::to_string(gb) + "000000000";
  return line("viaduct_peers", ",state=\"ready\"", "2") +
         line("viaduct_peers", ",state=\"lost\"", "1") + line("viaduct_pins", "", "4") +
         line("viaduct_pinned_bytes", "", "1048576") +
         line("viaduct_moved_bytes_total", ",backend=\"tcp\",rail=\"eth0\"", bytes) +
         line("viaduct_moved_bytes_total", ",backend=\"tcp\",rail=\"eth1\"", "0") +
         line("viaduct_errors_total", ",backend=\"tcp\",rail=\"eth0\",cause=\"peer lost\"", "3") +
         line("viaduct_transfers_ended_total", ",state=\"done\"", std::to_string(done)) +
         line("viaduct_transfer_seconds_bucket", ",le=\"0.001\"", std::to_string(fast)) +
         line("viaduct_transfer_seconds_bucket", ",le=\"0.002\"", std::to_string(fast + slow)) +
         line("viaduct_transfer_seconds_bucket", ",le=\"+Inf\"", std::to_string(fast + slow)) +
         "# EOF\n";
}

TEST(TopRows, RatesAreOverTheTimeBetweenTwoReadings) {
  const auto rows =
      topRows(samplesOf({textOf("a", 1, 10, 5, 0)}), samplesOf({textOf("a", 5, 30, 5, 20)}), 2s);
  ASSERT_EQ(rows.size(), 1U);
  EXPECT_EQ(rows[0].pid, 7U);
  EXPECT_EQ(rows[0].agent, "a");
  EXPECT_EQ(rows[0].ready_peers, 2U);
  EXPECT_EQ(rows[0].peers, 3U);
  EXPECT_EQ(rows[0].pins, 4U);
  EXPECT_EQ(rows[0].pinned_bytes, 1U << 20U);
  EXPECT_EQ(rows[0].errors, 3U);
  EXPECT_EQ(rows[0].gb_per_s, 2);
  EXPECT_EQ(rows[0].transfers_per_s, 10);
  ASSERT_TRUE(rows[0].p50_s && rows[0].p99_s);
  EXPECT_NEAR(*rows[0].p50_s, 0.0015, 1e-9);
  EXPECT_NEAR(*rows[0].p99_s, 0.00199, 1e-9);
  ASSERT_EQ(rows[0].rails.size(), 1U);
  EXPECT_EQ(rows[0].rails[0].rail, "eth0");
  EXPECT_EQ(rows[0].rails[0].gb_per_s, 2);
}

TEST(TopRows, HaveNoRateForANewAgentAndNoLatencyWithoutATransfer) {
  const auto now = samplesOf({textOf("a", 1, 1, 1, 0), textOf("b", 1, 1, 1, 0)});
  const auto rows = topRows(samplesOf({textOf("a", 1, 1, 1, 0)}), now, 1s);
  ASSERT_EQ(rows.size(), 2U);
  EXPECT_EQ(rows[0].gb_per_s, 0);
  EXPECT_FALSE(rows[0].p50_s);
  EXPECT_FALSE(rows[1].gb_per_s);
  EXPECT_FALSE(rows[1].rails[0].gb_per_s);
}

TEST(TopRows, PrintATableAndJson) {
  const auto rows =
      topRows(samplesOf({textOf("a", 1, 10, 5, 0)}), samplesOf({textOf("a", 5, 30, 5, 20)}), 2s);
  EXPECT_EQ(
      topTable(rows, 132),
      "PID  AGENT   PEERS  PINS   PINNED  GB/s  XFER/s      P50      P99  ERRORS  RAILS, GB/s\n"
      "7    a      2 of 3     4  1.0 MiB  2.00    10.0  1.50 ms  1.99 ms       3  tcp/eth0 "
      "2.00\n");
  const base::Json json = topJson(rows, 2s);
  EXPECT_EQ(json["format"], "viaduct-top/1");
  EXPECT_EQ(json["seconds"], 2.0);
  EXPECT_EQ(json["agents"][0]["gb_per_s"], 2.0);
  EXPECT_EQ(json["agents"][0]["rails"][0]["backend"], "tcp");
}

// A row with the widest figures that an agent is likely to have.
TopRow wideRow() {
  return {.pid = 4194304,
          .agent = "decode-worker-17.cluster.example:4194304",
          .ready_peers = 127,
          .peers = 128,
          .pins = 1234,
          .pinned_bytes = std::uint64_t{1023} << 30U,
          .errors = 12345,
          .gb_per_s = 123.4,
          .transfers_per_s = 123456,
          .p50_s = 0.000123,
          .p99_s = 0.0123,
          .rails = {{"tcp", "eth0", 61.7, 12, 0.001}, {"tcp", "eth1", 61.7, 12, 0.001}}};
}

TEST(TopRows, FitIntoANarrowTerminal) {
  TopRow row = wideRow();
  EXPECT_EQ(topTable({row}, 80),
            "PID     AGENT                                  GB/s XFER/s    P50     P99 ERRORS\n"
            "4194304 decode-worker-17.cluster.example:41...  123 123456 123 us 12.3 ms  12345\n"
            "         RAILS, GB/s: tcp/eth0 61.7 (12 waiting, 1.00 ms), tcp/eth1 61.7 (12\n"
            "         waiting, 1.00 ms)\n");
  row.agent = "decode-17";
  EXPECT_EQ(topTable({row}, 80),
            "PID     AGENT          PEERS PINS     PINNED GB/s XFER/s    P50     P99 ERRORS\n"
            "4194304 decode-17 127 of 128 1234 1023.0 GiB  123 123456 123 us 12.3 ms  12345\n"
            "         RAILS, GB/s: tcp/eth0 61.7 (12 waiting, 1.00 ms), tcp/eth1 61.7 (12\n"
            "         waiting, 1.00 ms)\n");
  EXPECT_LE(testing::widestLine(topTable({wideRow(), row}, 40)), 40U);
}

TEST(TopRows, ShowEveryColumnInAWideTerminal) {
  const std::string text = topTable({wideRow()}, 132);
  for (const char* title : {"PEERS", "PINS", "PINNED", "ERRORS"})
    EXPECT_TRUE(testing::has(text, title)) << text;
  EXPECT_TRUE(testing::has(text, "decode-worker-17.cluster.example:4194304")) << text;
  EXPECT_LE(testing::widestLine(text), 132U) << text;
}

TEST(TopRows, ShowNoControlCharacterOfAnotherUsersNames) {
  const auto samples = samplesOf({textOf("a\x1b[2J", 1, 1, 1, 0)});
  EXPECT_EQ(topTable(topRows({}, samples, 1s), base::kNoLimit).find('\x1b'), std::string::npos);
}

TEST(TopRows, LeaveOutAgentsWithoutAProcess) {
  EXPECT_TRUE(samplesOf({"viaduct_pins{agent=\"a\"} 1\n", "garbage", ""}).empty());
}

}  // namespace
}  // namespace viaduct::app
