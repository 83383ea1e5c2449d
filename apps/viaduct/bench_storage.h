// The storage of a run: what the flags of storage mean for the run and for its agents. Threads:
// pure functions.
#pragma once

#include <viaduct/memory.h>
#include <viaduct/settings.h>

#include <optional>
#include <vector>

#include "viaduct/bench_plan.h"

namespace viaduct::app {

// `kind` is the kind of storage that the backends reach; nothing: none, and the flags of storage
// have no effect. `settings` are the agents' settings from the environment.
Result<StoragePlan> storageOf(const BenchOptions& options, std::optional<MemoryKind> kind,
                              const Settings& settings);

// The flags of storage for nixlbench's banner, without the keys of a store. `settings` are those of
// the agents.
std::vector<measure::Option> storageBanner(const BenchOptions& options,
                                           const measure::StorageChoice& choice,
                                           const Settings& settings);

}  // namespace viaduct::app
