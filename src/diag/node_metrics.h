// The metrics of a node, for Prometheus: the doctor's findings, and what the node's links carry.
// Threads: pure functions and values.
#pragma once

#include <chrono>
#include <span>
#include <string>
#include <vector>

#include "base/open_metrics.h"
#include "diag/diagnosis.h"
#include "host/counters.h"
#include "host/devices.h"
#include "host/process_limits.h"

namespace viaduct::diag {

struct NodeMetrics {
  Diagnosis diagnosis = {};
  std::chrono::system_clock::time_point diagnosed = {};
  std::vector<host::Device> devices = {};
  std::vector<host::Counter> counters = {};  // by the devices' names
  host::TcpSegments segments = {};
};

// Every metric, in the order of the text. docs/metrics.md has the same table.
std::span<const base::MetricFamily> nodeMetricFamilies();

std::string nodeMetricsText(const NodeMetrics& of);

}  // namespace viaduct::diag
