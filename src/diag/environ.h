// The environment of a process as values. Threads: pure functions, while none changes ours.
#pragma once

#include <string_view>

#include "diag/node.h"

namespace viaduct::diag {

// Of /proc/PID/environ: NAME=value, each with a zero byte at its end.
Variables variablesIn(std::string_view environ_text);
Variables ownVariables();

}  // namespace viaduct::diag
