// Finds the meeting place of the workers of `viaduct bench`. Threads: plain values; nothing is sent
// to the place.
#pragma once

#include <viaduct/settings.h>

#include <optional>

#include "meet/place_options.h"
#include "viaduct/bench_options.h"

namespace viaduct::app {

// Returns the place that the flags name. Otherwise nixlbench uses the agents' meeting place, or the
// etcd of this machine. Nothing: all workers run on this machine. `settings` are the agents'
// settings from the environment. A run with storage (`stored`) is one process by default.
Result<std::optional<meet::PlaceOptions>> placeOf(const BenchOptions& options,
                                                  const Settings& settings, bool stored);

// Chooses the addresses on which agents listen, unless the user chose some: all addresses if
// members may run on other machines.
void listenForOthers(const meet::PlaceOptions& place, Settings& settings);

}  // namespace viaduct::app
