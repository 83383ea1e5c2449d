// Ctrl-C and SIGTERM as a wish to stop. Threads: the main one, before there are others.
#pragma once

#include "base/stop.h"

namespace viaduct::app {

// Set by either signal from here on. A second one of the same kind ends the process at once.
const base::StopFlag& stopOnSignals();

}  // namespace viaduct::app
