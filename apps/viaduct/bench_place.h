// Where the workers of `viaduct bench` meet. Threads: plain values; nobody is asked yet.
#pragma once

#include <viaduct/settings.h>

#include <optional>

#include "meet/place_options.h"
#include "viaduct/bench_options.h"

namespace viaduct::app {

// What the flags say, else for nixlbench the agents' meeting place, else the etcd of this machine.
// Nothing: all workers are started here. `settings` are the agents' as the environment has them.
Result<std::optional<meet::PlaceOptions>> placeOf(const BenchOptions& options,
                                                  const Settings& settings);

// Members of other machines have to reach the agents: an address that nobody chose is everybody's.
void listenForOthers(const meet::PlaceOptions& place, Settings& settings);

}  // namespace viaduct::app
