// Statistics in the OpenMetrics format. Threads: pure.
#pragma once

#include <viaduct/statistics.h>

#include <span>
#include <string>

#include "base/open_metrics.h"

namespace viaduct::agent {

// Every metric, in the order of the text. docs/metrics.md has the same table.
std::span<const base::MetricFamily> metricFamilies();

// `pid` is that of the agent's process, in its own PID namespace.
std::string statisticsText(const Statistics& statistics, int pid);

}  // namespace viaduct::agent
