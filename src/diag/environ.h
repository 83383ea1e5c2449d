// A process's environment as values. Threads: pure functions, while no thread changes our
// environment.
#pragma once

#include <string_view>

#include "diag/node.h"

namespace viaduct::diag {

// Parses /proc/PID/environ: NAME=value, each ended by a zero byte.
Variables variablesIn(std::string_view environ_text);
Variables ownVariables();

}  // namespace viaduct::diag
