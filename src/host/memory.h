// How much memory a process may still take here, and how large the caches are. Threads: pure
// functions.
#pragma once

#include <cstdint>
#include <string>

namespace viaduct::host {

// What the kernel says is available, or what is left in this process's cgroup where that is less;
// 0 when it cannot be found out. Page cache that the kernel can drop counts as available. Files are
// read below `root`.
std::uint64_t availableMemory(const std::string& root = "/");
// Swap space that is free on this host; 0 also when it cannot be found out.
std::uint64_t freeSwap(const std::string& root = "/");

// Bytes of the first processor's largest cache; 0 when the kernel does not say. The C library does
// not say either on arm64.
std::uint64_t largestCache(const std::string& root = "/");

}  // namespace viaduct::host
