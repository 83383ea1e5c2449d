#include "diag/node_metrics.h"

#include <gtest/gtest.h>

#include <string_view>
#include <utility>

namespace viaduct::diag {
namespace {

NodeMetrics filled() {
  NodeMetrics out{
      .diagnosis = {.node = {"node-1", "6.1.0", "x86_64"}},
      .diagnosed = std::chrono::system_clock::time_point(std::chrono::seconds(1500)),
      .devices = {{.name = "eth0", .kind = host::DeviceKind::kEthernet, .link_bytes_per_s = 1000},
                  {.name = "mlx5_0", .kind = host::DeviceKind::kRdma},
                  {.name = "silent", .kind = host::DeviceKind::kVirtual}},
      .counters = {{"eth0", 7, 9}, {"mlx5_0", 5, 6, 4}, {"gone", 1, 1}},
      .segments = {.sent = 100, .repeated = 3}};
  for (const auto& [severity, code] : {std::pair(Severity::kFailure, "rdma.port-down"),
                                       std::pair(Severity::kFailure, "rdma.port-down"),
                                       std::pair(Severity::kInfo, "clock.\"odd\"")})
    out.diagnosis.findings.add({.severity = severity, .code = code});
  return out;
}

constexpr std::string_view kGolden = R"(# TYPE viaduct_node info
# HELP viaduct_node A node that a doctor watches.
viaduct_node_info{node="node-1",kernel="6.1.0",machine="x86_64"} 1
# TYPE viaduct_node_findings gauge
# HELP viaduct_node_findings Findings of the last diagnosis.
viaduct_node_findings{node="node-1",severity="info"} 1
viaduct_node_findings{node="node-1",severity="unknown"} 0
viaduct_node_findings{node="node-1",severity="warning"} 0
viaduct_node_findings{node="node-1",severity="failure"} 2
# TYPE viaduct_node_finding info
# HELP viaduct_node_finding A code that the last diagnosis found.
viaduct_node_finding_info{node="node-1",severity="failure",code="rdma.port-down"} 1
viaduct_node_finding_info{node="node-1",severity="info",code="clock.\"odd\""} 1
# TYPE viaduct_node_diagnosed_timestamp_seconds gauge
# UNIT viaduct_node_diagnosed_timestamp_seconds seconds
# HELP viaduct_node_diagnosed_timestamp_seconds Time of the last diagnosis, since 1970.
viaduct_node_diagnosed_timestamp_seconds{node="node-1"} 1500.0
# TYPE viaduct_node_link_bytes counter
# UNIT viaduct_node_link_bytes bytes
# HELP viaduct_node_link_bytes Bytes that an interface or RDMA port has carried, of all programs.
viaduct_node_link_bytes_total{node="node-1",device="eth0",kind="ethernet",direction="sent"} 7
viaduct_node_link_bytes_total{node="node-1",device="eth0",kind="ethernet",direction="received"} 9
viaduct_node_link_bytes_total{node="node-1",device="mlx5_0",kind="rdma",direction="sent"} 20
viaduct_node_link_bytes_total{node="node-1",device="mlx5_0",kind="rdma",direction="received"} 24
# TYPE viaduct_node_link_bytes_per_second gauge
# HELP viaduct_node_link_bytes_per_second Line rate in each direction. Missing where the kernel knows none.
viaduct_node_link_bytes_per_second{node="node-1",device="eth0",kind="ethernet"} 1000
# TYPE viaduct_node_sent_segments counter
# HELP viaduct_node_sent_segments TCP segments that the node has sent, of all programs.
viaduct_node_sent_segments_total{node="node-1"} 100
# TYPE viaduct_node_repeated_segments counter
# HELP viaduct_node_repeated_segments TCP segments that the node has sent again, of all programs.
viaduct_node_repeated_segments_total{node="node-1"} 3
# EOF
)";

TEST(NodeMetrics, HaveOneSeriesForACodeThatSeveralFindingsShare) {
  EXPECT_EQ(nodeMetricsText(filled()), kGolden);
}

}  // namespace
}  // namespace viaduct::diag
