// Gives and takes back memory, and finds the bytes behind an address. Threads: any that hold the
// world's lock.
#pragma once

#include <cstddef>
#include <memory>

#include "device/fake/world.h"

namespace viaduct::fakegpu {

// Memory of a device, which counts as used until nothing refers to it. kOutOfMemory: the device
// has no more. kOperatingSystem: this process has no descriptor for it.
CUresult newMemory(World& world, int device, std::size_t bytes, CUmemHandleType types,
                   std::shared_ptr<Memory>& into);

// Puts memory behind a free range of addresses, and fills in `block.start`. The block has its kind,
// its size and its memory.
CUresult place(World& world, Block block, CUdeviceptr* start);
// Takes the memory away from a block's addresses, and gives back the addresses.
void removeBlock(World& world, CUdeviceptr start);
// Takes back everything that was allocated, opened or registered in a context.
void freeAllOf(World& world, Context& context);

// The location of the bytes of an address of the fake GPU.
struct Place {
  std::byte* at = nullptr;
  bool host = false;
  bool pageable = false;  // host memory that is not registered
};

enum class User { kCopy, kKernel };

// Finds the bytes of a range. kInvalidValue: the range is not memory, or not all of one allocation,
// or this context may not use it. A kernel may only use its own device's memory, memory of devices
// whose access is enabled, and registered host memory.
CUresult findPlace(const World& world, const Context& context, User user, CUdeviceptr start,
                   std::size_t bytes, bool write, Place& into);

}  // namespace viaduct::fakegpu
