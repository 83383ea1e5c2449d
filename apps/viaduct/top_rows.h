// Makes the rows of `viaduct top` from two readings of the metrics. Threads: pure functions.
#pragma once

#include <chrono>
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "base/json.h"
#include "base/open_metrics.h"

namespace viaduct::app {

// The samples of each agent. The key is its process ID and name.
using AgentSamples =
    std::map<std::pair<std::uint64_t, std::string>, std::vector<base::MetricSample>>;
AgentSamples samplesOf(const std::vector<std::string>& texts);

struct TopRail {
  std::string backend = {}, rail = {};
  std::optional<double> gb_per_s = {};
  std::uint64_t works = 0;  // parts of running transfers
  double oldest_s = 0;      // since the oldest of these was posted
};

// One agent. Rates and latencies are those between the two readings. A missing value means that the
// agent is new, or that it made no transfer.
struct TopRow {
  std::uint64_t pid = 0;
  std::string agent = {};
  std::uint64_t ready_peers = 0, peers = 0;
  std::uint64_t pins = 0, pinned_bytes = 0;
  std::uint64_t errors = 0;  // since the agent's start
  std::optional<double> gb_per_s = {}, transfers_per_s = {};
  std::optional<double> p50_s = {}, p99_s = {};
  std::vector<TopRail> rails = {};  // rails that have ever moved bytes
};
std::vector<TopRow> topRows(const AgentSamples& before, const AgentSamples& after,
                            std::chrono::duration<double> between);

// Leaves out columns if `width` is too small for all.
std::string topTable(const std::vector<TopRow>& rows, std::size_t width);
base::Json topJson(const std::vector<TopRow>& rows, std::chrono::duration<double> between);

}  // namespace viaduct::app
