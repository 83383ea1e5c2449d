// Who and where this process is. Threads: any.
#pragma once

#include <viaduct/result.h>
#include <viaduct/settings.h>

#include <array>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>

#include "core/backend.h"

namespace viaduct::agent {

// Random, one per process; a fork()ed child has another.
std::array<std::uint8_t, 16> processId();
// Counts the fork()s between the program's start and this process. Cheap.
std::uint64_t forkGeneration();

Error unknownBackend(std::string_view wanted, std::span<const core::BackendEntry> catalogue);

}  // namespace viaduct::agent
