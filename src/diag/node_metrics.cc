#include "diag/node_metrics.h"

#include <algorithm>
#include <array>
#include <set>
#include <string_view>
#include <utility>

#include "base/lists.h"

namespace viaduct::diag {
namespace {

using base::MetricFamily;
using base::MetricLabels;
using base::MetricsWriter;
using host::DeviceKind;

using NodeFamilyWriter = base::FamilyWriter<NodeMetrics>;

constexpr std::string_view kindName(DeviceKind kind) {
  switch (kind) {
    case DeviceKind::kLoopback:
      return "loopback";
    case DeviceKind::kEthernet:
      return "ethernet";
    case DeviceKind::kVirtual:
      return "virtual";
    case DeviceKind::kRdma:
      return "rdma";
  }
  return "";
}

void writeNode(const NodeMetrics& of, MetricLabels labels, MetricsWriter& out) {
  labels.push_back({"kernel", of.diagnosis.node.kernel});
  labels.push_back({"machine", of.diagnosis.node.machine});
  out.sample("_info", labels, std::uint64_t{1});
}

void writeCounts(const NodeMetrics& of, MetricLabels labels, MetricsWriter& out) {
  labels.push_back({"severity", {}});
  for (const base::Word<Severity>& row : kSeverities) {
    labels.back().value = row.word;
    const auto has = [&row](const Finding& one) { return one.severity == row.value; };
    out.sample("", labels,
               static_cast<std::uint64_t>(std::ranges::count_if(of.diagnosis.findings.all(), has)));
  }
}

// A code that several findings share has one series for each severity.
void writeFindings(const NodeMetrics& of, MetricLabels labels, MetricsWriter& out) {
  std::set<std::pair<Severity, std::string_view>> written;
  labels.push_back({"severity", {}});
  labels.push_back({"code", {}});
  for (const Finding& one : of.diagnosis.findings.all()) {
    if (!written.emplace(one.severity, one.code).second) continue;
    labels[labels.size() - 2].value = severityName(one.severity);
    labels.back().value = one.code;
    out.sample("_info", labels, std::uint64_t{1});
  }
}

void writeDiagnosed(const NodeMetrics& of, MetricLabels labels, MetricsWriter& out) {
  out.sample("", labels, std::chrono::duration<double>(of.diagnosed.time_since_epoch()).count());
}

void addDevice(const host::Device& device, MetricLabels& labels) {
  labels.push_back({"device", device.name});
  labels.push_back({"kind", kindName(device.kind)});
}

void writeLinkBytes(const NodeMetrics& of, MetricLabels labels, MetricsWriter& out) {
  const std::size_t common = labels.size();
  for (const host::Device& device : of.devices) {
    const auto* const counter = base::firstWith(of.counters, &host::Counter::device, device.name);
    if (counter == nullptr) continue;
    for (const auto& [direction, count] :
         {std::pair("sent", counter->sent), std::pair("received", counter->received)}) {
      labels.resize(common);
      addDevice(device, labels);
      labels.push_back({"direction", direction});
      out.sample("_total", labels, count * counter->unit);
    }
  }
}

void writeLinkRates(const NodeMetrics& of, MetricLabels labels, MetricsWriter& out) {
  const std::size_t common = labels.size();
  for (const host::Device& device : of.devices) {
    if (device.link_bytes_per_s == 0) continue;
    labels.resize(common);
    addDevice(device, labels);
    out.sample("", labels, device.link_bytes_per_s);
  }
}

template <std::uint64_t host::TcpSegments::* kField>
void writeSegments(const NodeMetrics& of, MetricLabels labels, MetricsWriter& out) {
  out.sample("_total", labels, of.segments.*kField);
}

constexpr std::array kNodeRows{
    NodeFamilyWriter{{"viaduct_node", "info", "", "A node that a doctor watches."}, writeNode},
    NodeFamilyWriter{{"viaduct_node_findings", "gauge", "", "Findings of the last diagnosis."},
                     writeCounts},
    NodeFamilyWriter{{"viaduct_node_finding", "info", "", "A code that the last diagnosis found."},
                     writeFindings},
    NodeFamilyWriter{{"viaduct_node_diagnosed_timestamp_seconds", "gauge", "seconds",
                      "Time of the last diagnosis, since 1970."},
                     writeDiagnosed},
    NodeFamilyWriter{{"viaduct_node_link_bytes", "counter", "bytes",
                      "Bytes that an interface or RDMA port has carried, of all programs."},
                     writeLinkBytes},
    NodeFamilyWriter{{"viaduct_node_link_bytes_per_second", "gauge", "",
                      "Line rate in each direction. Missing where the kernel knows none."},
                     writeLinkRates},
    NodeFamilyWriter{{"viaduct_node_sent_segments", "counter", "",
                      "TCP segments that the node has sent, of all programs."},
                     writeSegments<&host::TcpSegments::sent>},
    NodeFamilyWriter{{"viaduct_node_repeated_segments", "counter", "",
                      "TCP segments that the node has sent again, of all programs."},
                     writeSegments<&host::TcpSegments::repeated>},
};

constexpr auto kNodeFamilies = base::familiesOf(kNodeRows);

}  // namespace

std::span<const MetricFamily> nodeMetricFamilies() { return kNodeFamilies; }

std::string nodeMetricsText(const NodeMetrics& of) {
  const MetricLabels labels{{"node", of.diagnosis.node.hostname}};
  return base::metricsText(kNodeRows, of, labels);
}

}  // namespace viaduct::diag
