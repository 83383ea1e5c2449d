// Limits on the threads of a kernel. The compilers of the host and of the GPU both read this file.
#pragma once

#include <cstdint>

namespace viaduct::cuda {

inline constexpr std::uint32_t kLanes = 32;  // the threads of a warp
// Kernels are compiled for groups of at most this many threads. A group has whole warps.
inline constexpr std::uint32_t kMostThreadsOfGroup = 512;
inline constexpr std::uint32_t kMostWarpsOfGroup = kMostThreadsOfGroup / kLanes;

}  // namespace viaduct::cuda
