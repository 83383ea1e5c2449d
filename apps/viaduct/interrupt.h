// Turns SIGINT and SIGTERM into a stop flag. Threads: the main one, before it starts others.
#pragma once

#include "base/stop.h"

namespace viaduct::app {

// From this call on, either signal sets the flag. A second signal of the same kind ends the process
// at once.
const base::StopFlag& stopOnSignals();

}  // namespace viaduct::app
