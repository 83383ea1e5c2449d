// The options and the plan of `viaduct kv bench` and `viaduct kv trace`. Threads: pure functions;
// they read this host's memory and the file of a trace.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "measure/workload/read_trace.h"
#include "measure/workload/spec.h"
#include "viaduct/bench_plan.h"

namespace viaduct::app {

struct KvOptions : RunOptions {
  std::string model = {};
  std::vector<std::uint32_t> tokens = {8192}, blocks = {}, requests = {};
  std::uint32_t block_to = 0, tp = 1, tp_to = 0;  // 0: as at the source
  std::optional<KvOrder> order = {};
  std::optional<KvArrangement> arrangement = {};
  std::uint64_t pool_budget = 0;  // 0: a part of this host's memory
  // The next fields are only for `viaduct kv trace`.
  std::string trace_file = {};
  measure::TraceReading reading = {};
  measure::KvTrace trace = {};  // without its requests
  std::uint64_t prefill_rate = 0;
};

// Plans the paged and the bulk rows of all trials. They take turns, so that a change of the
// machine's load affects both kinds of rows.
PlanOrProblems planKv(const KvOptions& options, const Settings& settings);
// Reads a trace and plans its replay. A terminal shows the progress.
PlanOrProblems planKvTrace(const KvOptions& options, const Settings& settings);

}  // namespace viaduct::app
