#include <gtest/gtest.h>

#include <algorithm>
#include <string>

#include "diag/counters.h"
#include "diag/findings_testing.h"
#include "diag/fixtures_testing.h"
#include "diag/topics.h"

namespace viaduct::diag {
namespace {

using testing::codesAboveInfo;
using testing::findingOf;
using testing::roceNode;

using Codes = std::vector<std::string>;

constexpr auto kPort = "/sys/class/infiniband/mlx5_3/ports/1";

TEST(CheckCounters, NamesGrownCounters) {
  struct Row {
    const char *counter, *code;
  };
  for (const auto& [counter, code] :
       {Row{"/counters/link_downed", "counters.link-downed"},
        Row{"/hw_counters/out_of_sequence", "counters.out-of-sequence"},
        Row{"/counters/port_xmit_discards", "counters.discards"},
        Row{"/hw_counters/rnr_nak_retry_err", "counters.rnr"},
        Row{"/hw_counters/local_ack_timeout_err", "counters.local-ack-timeout"},
        Row{"/hw_counters/rx_icrc_encapsulated", "counters.corrupt-packets"},
        Row{"/hw_counters/resp_remote_access_errors", "counters.remote-access"},
        Row{"/counters/symbol_error", "counters.signal-errors"}}) {
    auto folder = roceNode();
    folder.live.seconds = 2;
    folder.live.grown[std::string(kPort) + counter] = 17;
    EXPECT_EQ(codesAboveInfo(folder), Codes{code});
    const Finding finding = findingOf(folder, code);
    EXPECT_TRUE(finding.what.ends_with(": mlx5_3.")) << finding.what;
    EXPECT_EQ(finding.evidence.at(0).value, "17 more within 2.0 s");
  }
}

TEST(CheckCounters, HaveOneFindingForAllDevices) {
  auto folder = roceNode();
  for (const char* device : {"mlx5_1", "mlx5_3"})
    for (const char* name : {"out_of_sequence", "packet_seq_err"})
      folder.live
          .grown[std::string("/sys/class/infiniband/") + device + "/ports/1/hw_counters/" + name] =
          3;
  EXPECT_EQ(codesAboveInfo(folder), Codes{"counters.out-of-sequence"});
  EXPECT_EQ(findingOf(folder, "counters.out-of-sequence").what,
            "Packets arrive out of sequence: mlx5_1, mlx5_3.");
  EXPECT_NE(findingOf(folder, "counters.out-of-sequence").fix.find("mlnx_qos -i rail1;"),
            std::string::npos);
}

TEST(CheckCounters, TakeCongestionMarksAndTrafficForHealthy) {
  auto folder = roceNode();
  const std::string at = std::string(kPort) + "/hw_counters/";
  for (const char* name : {"np_cnp_sent", "rp_cnp_handled", "rx_write_requests"})
    folder.live.grown[at + name] = 100000;
  folder.live.grown[std::string(kPort) + "/counters/port_rcv_data"] = 100000;
  EXPECT_EQ(codesAboveInfo(folder), Codes{});
}

TEST(CheckCounters, NamesDiscardsWithoutCongestionMarks) {
  const auto folder = roceNode();
  folder.rewrite(std::string(kPort) + "/counters/port_xmit_discards", "4711");
  EXPECT_EQ(codesAboveInfo(folder), Codes{}) << "marks were sent";
  folder.rewrite(std::string(kPort) + "/hw_counters/np_cnp_sent", "0");
  folder.rewrite(std::string(kPort) + "/hw_counters/rp_cnp_handled", "0");
  EXPECT_EQ(codesAboveInfo(folder), Codes{"counters.discards"});
}

TEST(CheckCounters, AreNotFineWhereTheyWereNotSampled) {
  auto folder = roceNode();
  folder.live.seconds = 0;
  EXPECT_EQ(codesAboveInfo(folder), Codes{"counters.not-sampled"});
}

TEST(CheckCounters, BelieveNoPathThatIsNotThere) {
  auto folder = roceNode();
  folder.live.grown["/etc/out_of_sequence"] = 5;
  folder.live.grown["/sys/class/infiniband/mlx5_3/ports/9/hw_counters/out_of_sequence"] = 5;
  EXPECT_EQ(codesAboveInfo(folder), Codes{});
}

TEST(CounterPaths, AreFilesThatContainANumber) {
  const auto folder = testing::openShiftAfter();
  folder.rewrite("/sys/class/infiniband/mlx5_6/ports/1/hw_counters/out_of_sequence", "garbage");
  const Node node = folder.node();
  const auto paths = counterPaths(node.tree);
  const auto has = [&](const char* path) {
    return std::find(paths.begin(), paths.end(), path) != paths.end();
  };
  EXPECT_TRUE(has("/sys/class/infiniband/mlx5_6/ports/1/hw_counters/packet_seq_err"));
  EXPECT_TRUE(has("/sys/class/infiniband/mlx5_0/ports/1/counters/link_downed"));
  EXPECT_TRUE(has("/sys/class/net/net4/carrier_changes"));
  EXPECT_FALSE(has("/sys/class/infiniband/mlx5_6/ports/1/hw_counters/out_of_sequence"));
  EXPECT_FALSE(has("/sys/class/infiniband/mlx5_6/ports/1/counters/link_downed"))
      << "N/A (no PMA) is no number, and no error";
  EXPECT_FALSE(has("/sys/class/infiniband/mlx5_6/ports/1/hw_counters/np_cnp_sent"))
      << "nobody judges its growth";
  EXPECT_TRUE(node.tree.unread().empty());
}

TEST(CounterPaths, IncludePcieErrorsOnTheWayOfNicsAndGpus) {
  const auto folder = testing::openShiftAfter();
  folder.rewrite("/sys/bus/pci/devices/0000:19:00.0/aer_dev_nonfatal",
                 "DLP 3\nTOTAL_ERR_NONFATAL 3");
  folder.rewrite("/sys/bus/pci/devices/0000:15:01.0/aer_dev_fatal", "TOTAL_ERR_FATAL 1");
  const Node node = folder.node();
  const auto paths = counterPaths(node.tree);
  const auto value = [&](const char* link) {
    const std::string path = folder.place(link);
    const bool has = std::find(paths.begin(), paths.end(), path) != paths.end();
    return has ? counterValue(node.tree, path) : std::nullopt;
  };
  EXPECT_EQ(value("/sys/bus/pci/devices/0000:19:00.0/aer_dev_nonfatal"), 3U);
  EXPECT_EQ(value("/sys/bus/pci/devices/0000:15:01.0/aer_dev_fatal"), 1U) << "a bridge";
  EXPECT_EQ(value("/sys/bus/pci/devices/0000:1b:00.0/aer_dev_correctable"), 0U) << "a GPU";
  EXPECT_EQ(value("/sys/bus/pci/devices/0000:15:01.0/aer_dev_nonfatal"), std::nullopt);
}

}  // namespace
}  // namespace viaduct::diag
