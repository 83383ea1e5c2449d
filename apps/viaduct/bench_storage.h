// The storage of a run: what the flags of storage mean for the run and for its agents. Threads:
// pure functions.
#pragma once

#include <viaduct/memory.h>
#include <viaduct/settings.h>

#include <optional>
#include <string>
#include <vector>

#include "measure/load/spec.h"
#include "viaduct/bench_options.h"

namespace viaduct::app {

struct StoragePlan {
  measure::StorageChoice choice = {};
  std::vector<std::string> settings = {};  // VARIABLE=value, for the agents
  std::vector<std::string> remarks = {};   // for the user
};

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
