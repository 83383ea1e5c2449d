// Which process this is. Threads: any.
#pragma once

#include <array>
#include <cstdint>

namespace viaduct::base {

// Random, one per process; a fork()ed child has another.
using ProcessId = std::array<std::uint8_t, 16>;
ProcessId processId();
// Counts the fork()s between the program's start and this process. Cheap.
std::uint64_t forkGeneration();

}  // namespace viaduct::base
