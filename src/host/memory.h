// The memory that a process may still take here, and the size of the caches. Threads: pure
// functions.
#pragma once

#include <cstdint>
#include <optional>
#include <string_view>

#include "host/tree.h"

namespace viaduct::host {

// The memory that the kernel reports as available, or the room in this process's cgroup if that is
// less; 0 if unknown. Page cache that the kernel can drop counts as available.
std::uint64_t availableMemory(const Tree& tree = {});
// Free swap space of this host; 0 also if unknown.
std::uint64_t freeSwap(const Tree& tree = {});

// Bytes of a line of /proc/meminfo: "MemTotal".
std::optional<std::uint64_t> memInfo(const Tree& tree, std::string_view key);

// Bytes of the first processor's largest cache; 0 if the kernel does not say. We ask the kernel
// because the C library does not know it on arm64.
std::uint64_t largestCache(const Tree& tree = {});

}  // namespace viaduct::host
