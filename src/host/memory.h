// How much memory a process may still take here. Threads: pure functions.
#pragma once

#include <cstdint>
#include <string>

namespace viaduct::host {

// What the kernel says is available, or what is left in this process's cgroup where that is less;
// 0 when it cannot be found out. Files are read below `root`.
std::uint64_t availableMemory(const std::string& root = "/");

}  // namespace viaduct::host
