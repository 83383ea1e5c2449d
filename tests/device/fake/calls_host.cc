// Registered host memory.
#include <sys/mman.h>

#include "device/fake/allocations.h"
#include "device/fake/call.h"

namespace viaduct::fakegpu {
namespace {

constexpr unsigned kAllocationFlags = 7;     // portable, device map, write combined
constexpr unsigned kRegistrationFlags = 15;  // portable, device map, device memory, read only

// Removes the registered range that starts at `memory`.
CUresult endRange(World& world, Lock& lock, void* memory, bool allocated) {
  drain(world, lock);
  const auto address = reinterpret_cast<std::uintptr_t>(memory);
  std::uintptr_t start = 0;
  const HostRange* range = world.memory.findHost(address, &start);
  if (range == nullptr || start != address || range->allocated != allocated)
    return allocated ? CUresult::kInvalidValue : CUresult::kHostMemoryNotRegistered;
  if (allocated) ::munmap(memory, range->bytes);
  world.memory.removeHost(start);
  return CUresult::kSuccess;
}

}  // namespace
}  // namespace viaduct::fakegpu

// NOLINTBEGIN(readability-identifier-naming): the driver's names
using namespace viaduct::fakegpu;  // NOLINT(google-build-using-namespace)

FAKE_CUDA_EXPORT CUresult cuMemHostRegister_v2(void* memory, std::size_t bytes, unsigned flags) {
  return inContext("cuMemHostRegister", [&](World& one, Lock&, Context& context) {
    const auto start = reinterpret_cast<std::uintptr_t>(memory);
    if (bytes == 0 || (flags & ~kRegistrationFlags) != 0) return CUresult::kInvalidValue;
    if (one.addresses.contains(start) || !isHostMemory(start, bytes, (flags & 8) == 0))
      return CUresult::kInvalidValue;
    const bool added = one.memory.addHost(start, HostRange{bytes, false, 0, &context});
    return added ? CUresult::kSuccess : CUresult::kHostMemoryAlreadyRegistered;
  });
}

FAKE_CUDA_EXPORT CUresult cuMemHostUnregister(void* memory) {
  return inContext("cuMemHostUnregister", [&](World& one, Lock& lock, Context&) {
    return endRange(one, lock, memory, false);
  });
}

FAKE_CUDA_EXPORT CUresult cuMemHostAlloc(void** memory, std::size_t bytes, unsigned flags) {
  return inContext("cuMemHostAlloc", [&](World& one, Lock&, Context& context) {
    if (bytes == 0 || (flags & ~kAllocationFlags) != 0) return CUresult::kInvalidValue;
    const std::size_t length = roundUp(bytes, 4096);
    void* got = ::mmap(nullptr, length, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (got == MAP_FAILED) return CUresult::kOutOfMemory;
    *memory = got;
    one.memory.addHost(reinterpret_cast<std::uintptr_t>(got), HostRange{length, true, 0, &context});
    return CUresult::kSuccess;
  });
}

FAKE_CUDA_EXPORT CUresult cuMemFreeHost(void* memory) {
  return inContext("cuMemFreeHost", [&](World& one, Lock& lock, Context&) {
    return endRange(one, lock, memory, true);
  });
}

FAKE_CUDA_EXPORT CUresult cuMemHostGetDevicePointer_v2(CUdeviceptr* address, void* memory,
                                                       unsigned flags) {
  return inContext("cuMemHostGetDevicePointer", [&](World& one, Lock&, Context&) {
    const auto start = reinterpret_cast<std::uintptr_t>(memory);
    if (flags != 0 || one.memory.findHost(start) == nullptr) return CUresult::kInvalidValue;
    *address = start;
    return CUresult::kSuccess;
  });
}
// NOLINTEND(readability-identifier-naming)
