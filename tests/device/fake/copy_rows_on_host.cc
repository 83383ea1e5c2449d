// Runs the product's copy kernel on the aliases of device addresses.
#include <cstring>

#include "device/fake/allocations.h"
#include "device/fake/kernels.h"
#include "device/kernel_on_host.h"
// After the header that compiles it for the host.
#include "backends/cuda/kernel/copy_rows.cu"

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

// The table of rows: its entries are aligned, and the kernel reads it without a function.
const cuda::Row* findRows(std::uint64_t rows, std::uint32_t count) {
  const Lock lock(running->world);
  Place place;
  if (rows % 8 != 0) throw Refusal{kMisalignedAddress};
  if (findPlace(running->world, running->context, User::kKernel, rows, count * sizeof(cuda::Row),
                false, place) != CUresult::kSuccess)
    throw Refusal{CUresult::kIllegalAddress};
  return reinterpret_cast<const cuda::Row*>(place.at);
}

struct Arguments {
  std::uint64_t rows = 0;
  std::uint64_t count = 0;
};

CUresult runRows(World& world, const Context& context, const Launch& launch) {
  Arguments given;
  std::memcpy(&given, launch.arguments.data(), sizeof given);
  const auto count = static_cast<std::uint32_t>(given.count);
  Running now{world, context};
  running = &now;
  testing::find_kernel_bytes = &find;
  CUresult result = CUresult::kSuccess;
  try {
    testing::runKernel(launch.groups, launch.threads, viaduct_copy_rows,
                       findRows(given.rows, count), count);
  } catch (const Refusal& refusal) {
    result = refusal.why;
  }
  const Lock lock(world);
  world.copied_by_kernels += now.bytes;
  return result;
}

}  // namespace

const Kernel* copyRowsKernel() {
  static const Kernel kernel{"viaduct_copy_rows", {8, 4}, &runRows};
  return &kernel;
}

}  // namespace viaduct::fakegpu
