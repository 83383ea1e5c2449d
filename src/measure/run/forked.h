// Runs a function in a child process. CUDA does not work in a process that is forked after CUDA has
// started, so a command that forks leaves each use of a GPU to a child. Threads: one; the caller
// has no other thread and no agent.
#pragma once

#include <viaduct/result.h>

#include <functional>
#include <string>

#include "base/stop.h"

namespace viaduct::measure::matrix {

// Returns the text that `work` returns in the child. If `stop` is set, the child gets SIGTERM, and
// has to end soon. Fails if the child cannot start, or if a signal ends it.
Result<std::string> inChild(const std::function<std::string()>& work, const base::StopFlag& stop);

}  // namespace viaduct::measure::matrix
