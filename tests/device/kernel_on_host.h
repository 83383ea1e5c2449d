// Compiles a CUDA kernel for the host: include this file, then the kernel's source. The threads of
// a launch run one after another in the calling thread, so a kernel must not wait for another
// thread.
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstring>

// NOLINTBEGIN: the names are CUDA's.
#define __device__
#define __global__
#define __launch_bounds__(...)

struct uint2 {
  unsigned int x, y;
};
struct uint4 {
  unsigned int x, y, z, w;
};
struct alignas(16) ulonglong2 {
  unsigned long long x, y;
};
struct KernelPlace {
  unsigned int x = 0;
};
inline thread_local KernelPlace gridDim, blockDim, blockIdx, threadIdx;

namespace viaduct::testing {

// Called before each access of a kernel. `bytes` is the size of the access; the address has to be a
// multiple of it. Returns the place of the accessed bytes in the host's memory. An exception ends
// the launch. If find_kernel_bytes is null, the addresses are the host's.
enum class KernelAccess { kLoad, kStore };
using FindKernelBytes = void* (*)(std::uint64_t address, std::size_t bytes, KernelAccess access);
inline thread_local FindKernelBytes find_kernel_bytes = nullptr;

inline void* kernelBytes(std::uint64_t address, std::size_t bytes, KernelAccess access) {
  if (find_kernel_bytes != nullptr) return find_kernel_bytes(address, bytes, access);
  return reinterpret_cast<void*>(address);
}

// Launches `groups` groups of `threads` threads.
template <class Kernel, class... Arguments>
void runKernel(unsigned int groups, unsigned int threads, Kernel kernel, Arguments... arguments) {
  gridDim.x = groups;
  blockDim.x = threads;
  for (blockIdx.x = 0; blockIdx.x < groups; ++blockIdx.x)
    for (threadIdx.x = 0; threadIdx.x < threads; ++threadIdx.x) kernel(arguments...);
}

}  // namespace viaduct::testing

template <class Unit>
Unit __ldcg(const Unit* from) {
  using namespace viaduct::testing;
  Unit unit;
  const auto address = reinterpret_cast<std::uint64_t>(from);
  std::memcpy(&unit, kernelBytes(address, sizeof unit, KernelAccess::kLoad), sizeof unit);
  return unit;
}
template <class Unit>
void __stcg(Unit* to, Unit unit) {
  using namespace viaduct::testing;
  const auto address = reinterpret_cast<std::uint64_t>(to);
  std::memcpy(kernelBytes(address, sizeof unit, KernelAccess::kStore), &unit, sizeof unit);
}
// The kernel's own function for the host: the lanes of a warp run one after another, from 0 on.
inline void storeSumOfWarp(ulonglong2* to, unsigned int lane, ulonglong2 value) {
  using namespace viaduct::testing;
  const auto address = reinterpret_cast<std::uint64_t>(to);
  void* const at = kernelBytes(address, sizeof value, KernelAccess::kStore);
  ulonglong2 before{0, 0};
  if (lane != 0) std::memcpy(&before, at, sizeof before);
  const ulonglong2 sum{before.x + value.x, before.y + value.y};
  std::memcpy(at, &sum, sizeof sum);
}
// NOLINTEND
