// Two processes of this machine that measure rows between them, and the one that watches over
// them. Threads: one; the caller has no thread and no agent yet, since it forks.
#pragma once

#include <viaduct/settings.h>

#include <cstddef>
#include <functional>
#include <string>
#include <vector>

#include "measure/load/workload.h"
#include "measure/result/row.h"
#include "measure/run/channel.h"

namespace viaduct::measure {

struct Progress {
  std::function<void(std::size_t number, const Workload& workload)> started;
  std::function<void(const Row& row)> finished;
};

enum class RunEnd {
  kComplete,
  kInterrupted,  // `stop` was set
  kWorkerDied,   // one of the two was killed, or crashed
  kFailed,       // they could not open, connect or go on
};

struct RunOutcome {
  RunEnd end = RunEnd::kComplete;
  std::string problem = {};  // unless complete: what happened, and to whom
  std::vector<Row> rows = {};
};

// On return both processes are gone, however they ended.
RunOutcome measureWithTwoWorkers(const Settings& settings, const std::vector<Workload>& workloads,
                                 const Progress& progress, const StopFlag& stop);

}  // namespace viaduct::measure
