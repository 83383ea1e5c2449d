// Tells this process from others and from fork()ed children. Threads: any.
#pragma once

#include <array>
#include <cstdint>

namespace viaduct::base {

// Random, one per process; a fork()ed child gets another.
using ProcessId = std::array<std::uint8_t, 16>;
ProcessId processId();
// The number of fork()s that led to this process, since the program's first call of this function.
// Cheap.
std::uint64_t forkGeneration();

}  // namespace viaduct::base
