// Memory pools, whose memory no legacy handle opens.
#include "device/fake/allocations.h"
#include "device/fake/call.h"

namespace viaduct::fakegpu {
namespace {

CUmemoryPool defaultPool(World& world, int device) {
  for (const auto& [handle, pool] : world.pools.objects())
    if (pool->device == device && pool->is_default) return CUmemoryPool(handle);
  return world.pools.add<CUmemoryPool>(
      std::make_shared<Pool>(Pool{device, CUmemHandleType::kNone, true}));
}

// Does not wait for the stream's earlier work, because the addresses are new.
CUresult allocateFrom(World& world, CUmemoryPool handle, std::size_t bytes, CUdeviceptr* address) {
  const auto pool = world.pools.find(handle);
  if (pool == nullptr || bytes == 0) return CUresult::kInvalidValue;
  Block block;
  block.bytes = bytes;
  block.kind = BlockKind::kPooled;
  block.pool = handle;
  const CUresult made = newMemory(world, pool->device, bytes, pool->types, block.memory);
  return made != CUresult::kSuccess ? made : place(world, std::move(block), address);
}

}  // namespace
}  // namespace viaduct::fakegpu

// NOLINTBEGIN(readability-identifier-naming): the driver's names
using namespace viaduct::fakegpu;  // NOLINT(google-build-using-namespace)

FAKE_CUDA_EXPORT CUresult cuDeviceGetDefaultMemPool(CUmemoryPool* pool, CUdevice device) {
  return inProcess("cuDeviceGetDefaultMemPool", [&](World& one, Lock&) {
    if (!one.has(device)) return CUresult::kInvalidDevice;
    *pool = defaultPool(one, device);
    return CUresult::kSuccess;
  });
}

FAKE_CUDA_EXPORT CUresult cuMemPoolCreate(CUmemoryPool* pool, const CUmemPoolProps* properties) {
  return inProcess("cuMemPoolCreate", [&](World& one, Lock&) {
    if (properties->location.type != CUmemLocationType::kDevice) return CUresult::kInvalidValue;
    *pool = one.pools.add<CUmemoryPool>(
        std::make_shared<Pool>(Pool{properties->location.id, properties->handle_types, false}));
    return CUresult::kSuccess;
  });
}

FAKE_CUDA_EXPORT CUresult cuMemPoolDestroy(CUmemoryPool pool) {
  return inProcess("cuMemPoolDestroy", [&](World& one, Lock&) {
    const auto known = one.pools.find(pool);
    if (known == nullptr || known->is_default) return CUresult::kInvalidValue;
    one.pools.remove(pool);
    return CUresult::kSuccess;
  });
}

FAKE_CUDA_EXPORT CUresult cuMemAllocAsync(CUdeviceptr* address, std::size_t bytes, CUstream) {
  return inContext("cuMemAllocAsync", [&](World& one, Lock&, Context& context) {
    return allocateFrom(one, defaultPool(one, context.device), bytes, address);
  });
}

FAKE_CUDA_EXPORT CUresult cuMemAllocFromPoolAsync(CUdeviceptr* address, std::size_t bytes,
                                                  CUmemoryPool pool, CUstream) {
  return inContext("cuMemAllocFromPoolAsync", [&](World& one, Lock&, Context&) {
    return allocateFrom(one, pool, bytes, address);
  });
}

// Ends the memory at once, after the work of all streams.
FAKE_CUDA_EXPORT CUresult cuMemFreeAsync(CUdeviceptr address, CUstream) {
  return inContext("cuMemFreeAsync", [&](World& one, Lock& lock, Context& context) {
    drain(one, lock);
    const Block* block = one.memory.find(address);
    if (block == nullptr || block->start != address || block->kind != BlockKind::kPooled)
      return CUresult::kInvalidValue;
    removeBlock(one, address);
    return context.failure;
  });
}
// NOLINTEND(readability-identifier-naming)
