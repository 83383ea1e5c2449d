// The page docs/bench-flags.md: the flags of all commands that measure. Threads: any.
#pragma once

#include <string>

namespace viaduct::app {

std::string flagsPage();

}  // namespace viaduct::app
