// Device memory of cuMemAlloc, managed memory, and the amounts of free and total memory.
#include "device/fake/allocations.h"
#include "device/fake/call.h"

namespace viaduct::fakegpu {
namespace {

CUresult allocate(World& world, Context& context, BlockKind kind, std::size_t bytes,
                  CUdeviceptr* start) {
  if (bytes == 0 || start == nullptr) return CUresult::kInvalidValue;
  Block block;
  block.bytes = bytes;
  block.kind = kind;
  block.context = &context;
  const CUresult made =
      newMemory(world, context.device, bytes, CUmemHandleType::kNone, block.memory);
  return made != CUresult::kSuccess ? made : place(world, std::move(block), start);
}

}  // namespace
}  // namespace viaduct::fakegpu

// NOLINTBEGIN(readability-identifier-naming): the driver's names
using namespace viaduct::fakegpu;  // NOLINT(google-build-using-namespace)

FAKE_CUDA_EXPORT CUresult cuMemAlloc_v2(CUdeviceptr* address, std::size_t bytes) {
  return inContext("cuMemAlloc", [&](World& one, Lock&, Context& context) {
    return allocate(one, context, BlockKind::kAllocated, bytes, address);
  });
}

FAKE_CUDA_EXPORT CUresult cuMemAllocManaged(CUdeviceptr* address, std::size_t bytes,
                                            unsigned flags) {
  return inContext("cuMemAllocManaged", [&](World& one, Lock&, Context& context) {
    if (flags != 1 && flags != 2) return CUresult::kInvalidValue;
    return allocate(one, context, BlockKind::kManaged, bytes, address);
  });
}

// Like the real driver's function, it waits for all work that was added so far.
FAKE_CUDA_EXPORT CUresult cuMemFree_v2(CUdeviceptr address) {
  return inContext("cuMemFree", [&](World& one, Lock& lock, Context& context) {
    if (address == 0) return CUresult::kSuccess;
    drain(one, lock);
    const Block* block = one.memory.find(address);
    const bool freeable = block != nullptr && block->start == address &&
                          block->kind != BlockKind::kOpened && block->kind != BlockKind::kMapped;
    if (!freeable) return CUresult::kInvalidValue;
    removeBlock(one, address);
    return context.failure;
  });
}

FAKE_CUDA_EXPORT CUresult cuMemGetInfo_v2(std::size_t* free, std::size_t* total) {
  return inContext("cuMemGetInfo", [&](World& one, Lock&, Context& context) {
    *total = one.configuration.memory;
    *free = *total - one.device(context.device).used;
    return CUresult::kSuccess;
  });
}

FAKE_CUDA_EXPORT CUresult cuMemGetAddressRange_v2(CUdeviceptr* start, std::size_t* bytes,
                                                  CUdeviceptr address) {
  return inContext("cuMemGetAddressRange", [&](World& one, Lock&, Context&) {
    const Block* block = one.memory.find(address);
    if (block == nullptr) return CUresult::kNotFound;
    if (start != nullptr) *start = block->start;
    if (bytes != nullptr) *bytes = block->bytes;
    return CUresult::kSuccess;
  });
}
// NOLINTEND(readability-identifier-naming)
