#include "device/fake/kernel_run.h"

#include "device/fake/allocations.h"
#include "device/kernel_on_host.h"

namespace viaduct::fakegpu {
namespace {

using testing::KernelAccess;

// An access that the real GPU refuses. It ends the launch.
struct Refusal {
  CUresult why;
};

// A range that the kernel may use, with the place of its bytes.
struct Range {
  std::uint64_t start = 0;
  std::uint64_t bytes = 0;
  std::byte* at = nullptr;
  bool has(std::uint64_t address, std::size_t size) const {
    return address >= start && bytes >= size && address - start <= bytes - size;
  }
};

// The launch that this thread runs, and the ranges of its last accesses. No range ends during a
// launch, because all calls that end one wait for launches.
struct Running {
  World& world;
  const Context& context;
  std::uint64_t bytes = 0;
  Range loads = {};
  Range stores = {};
};
thread_local Running* running = nullptr;

// The whole allocation or registered range of an address.
Range rangeOf(const World& world, std::uint64_t address) {
  if (const Block* block = world.memory.find(address))
    return {block->start, block->bytes, world.addresses.alias(block->start)};
  std::uintptr_t start = 0;
  const HostRange* host = world.memory.findHost(address, &start);
  return {start, host->bytes, reinterpret_cast<std::byte*>(start)};
}

void* find(std::uint64_t address, std::size_t bytes, KernelAccess access) {
  if (address % bytes != 0) throw Refusal{kMisalignedAddress};
  const bool write = access == KernelAccess::kStore;
  Range& range = write ? running->stores : running->loads;
  if (write) running->bytes += bytes;
  if (range.has(address, bytes)) return range.at + (address - range.start);
  const Lock lock(running->world);
  Place place;
  if (findPlace(running->world, running->context, User::kKernel, address, bytes, write, place) !=
      CUresult::kSuccess)
    throw Refusal{CUresult::kIllegalAddress};
  range = rangeOf(running->world, address);
  return place.at;
}

}  // namespace

const std::byte* tableAt(std::uint64_t address, std::uint64_t bytes) {
  const Lock lock(running->world);
  Place place;
  if (address % 8 != 0) throw Refusal{kMisalignedAddress};
  if (findPlace(running->world, running->context, User::kKernel, address, bytes, false, place) !=
      CUresult::kSuccess)
    throw Refusal{CUresult::kIllegalAddress};
  return place.at;
}

CUresult runOnHost(World& world, const Context& context, const std::function<void()>& body) {
  Running now{world, context};
  running = &now;
  testing::find_kernel_bytes = &find;
  CUresult result = CUresult::kSuccess;
  try {
    body();
  } catch (const Refusal& refusal) {
    result = refusal.why;
  }
  const Lock lock(world);
  world.copied_by_kernels += now.bytes;
  return result;
}

}  // namespace viaduct::fakegpu
