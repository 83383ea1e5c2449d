// Finds the meeting place of the workers. Threads: plain values; nothing is sent to the place.
#pragma once

#include <viaduct/settings.h>

#include <optional>

#include "meet/place_options.h"
#include "viaduct/run_options.h"

namespace viaduct::app {

// Returns the place of the options. Nothing: all workers run on this machine. `settings` are the
// agents' settings.
Result<std::optional<meet::PlaceOptions>> placeOf(const MeetingOptions& options,
                                                  const Settings& settings);

// Chooses the addresses on which agents listen, unless the user chose some: all addresses if
// members may run on other machines.
void listenForOthers(const meet::PlaceOptions& place, Settings& settings);

}  // namespace viaduct::app
