// The memory that a process may still take here, and the size of the caches. Threads: pure
// functions.
#pragma once

#include <cstdint>
#include <string>

namespace viaduct::host {

// The memory that the kernel reports as available, or the room in this process's cgroup if that is
// less; 0 if unknown. Page cache that the kernel can drop counts as available. Files are read below
// `root`.
std::uint64_t availableMemory(const std::string& root = "/");
// Free swap space of this host; 0 also if unknown.
std::uint64_t freeSwap(const std::string& root = "/");

// Bytes of the first processor's largest cache; 0 if the kernel does not say. We ask the kernel
// because the C library does not know it on arm64.
std::uint64_t largestCache(const std::string& root = "/");

}  // namespace viaduct::host
