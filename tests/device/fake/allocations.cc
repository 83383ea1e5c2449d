#include "device/fake/allocations.h"

#include <sys/mman.h>

#include <algorithm>
#include <utility>
#include <vector>

namespace viaduct::fakegpu {
namespace {

// Whether the bit of this device is set.
bool has(std::uint64_t bits, int device) { return ((bits >> device) & 1) != 0; }

bool mayUse(const Context& context, User user, const Block& block, bool write) {
  if (block.kind == BlockKind::kMapped)
    return has(write ? block.writing : block.reading, context.device);
  const int device = block.memory->device();
  if (block.kind == BlockKind::kPooled) return device == context.device;
  if (user == User::kCopy || block.kind == BlockKind::kManaged) return true;
  const bool opened_here = block.kind == BlockKind::kOpened && block.context == &context;
  return opened_here || device == context.device || context.peers.count(device) != 0;
}

// A copy stays inside one allocation, or inside one reservation that has several.
bool mayGoOn(User user, const Block& block, const Block* next) {
  if (next == nullptr) return false;
  return user == User::kKernel ||
         (block.reservation != 0 && block.reservation == next->reservation);
}

bool covers(const World& world, const Context& context, User user, CUdeviceptr start,
            std::size_t bytes, bool write) {
  const CUdeviceptr end = start + bytes;
  const Block* block = world.memory.find(start);
  while (block != nullptr && mayUse(context, user, *block, write)) {
    const CUdeviceptr block_end = block->start + block->bytes;
    if (end <= block_end) return true;
    const Block* next = world.memory.find(block_end);
    if (!mayGoOn(user, *block, next)) return false;
    block = next;
  }
  return false;
}

}  // namespace

CUresult newMemory(World& world, int device, std::size_t bytes, CUmemHandleType types,
                   std::shared_ptr<Memory>& into) {
  Device& owner = world.device(device);
  const std::uint64_t charge = roundUp(bytes, kDevicePage);
  if (owner.used + charge > world.configuration.memory) return CUresult::kOutOfMemory;
  auto made = Memory::create(device, charge, types);
  if (made == nullptr) return CUresult::kOperatingSystem;
  owner.used += charge;
  Memory* raw = made.get();
  into = std::shared_ptr<Memory>(raw, [made = std::move(made), &owner, charge](Memory*) mutable {
    owner.used -= charge;
    made = nullptr;
  });
  return CUresult::kSuccess;
}

CUresult place(World& world, Block block, CUdeviceptr* start) {
  const std::size_t length = roundUp(block.bytes, kDevicePage);
  block.start = world.addresses.take(length, kDevicePage);
  if (block.start == 0) return CUresult::kOutOfMemory;
  const bool cpu = block.kind == BlockKind::kManaged;
  if (!world.addresses.map(block.start, length, block.memory->file(), cpu)) {
    world.addresses.give(block.start);
    return CUresult::kMapFailed;
  }
  *start = block.start;
  world.memory.add(std::move(block));
  return CUresult::kSuccess;
}

void removeBlock(World& world, CUdeviceptr start) {
  const Block* block = world.memory.find(start);
  world.addresses.unmap(start, roundUp(block->bytes, kDevicePage));
  if (block->kind != BlockKind::kMapped) world.addresses.give(start);
  world.memory.remove(start);
}

void freeAllOf(World& world, Context& context) {
  std::vector<CUdeviceptr> blocks;
  for (const auto& [start, block] : world.memory.blocks())
    if (block.context == &context) blocks.push_back(start);
  for (const CUdeviceptr start : blocks) removeBlock(world, start);
  std::vector<std::uintptr_t> hosts;
  for (const auto& [start, range] : world.memory.hosts())
    if (range.context == &context) hosts.push_back(start);
  for (const std::uintptr_t start : hosts) {
    const HostRange range = *world.memory.findHost(start);
    if (range.allocated) ::munmap(reinterpret_cast<void*>(start), range.bytes);
    world.memory.removeHost(start);
  }
}

CUresult findPlace(const World& world, const Context& context, User user, CUdeviceptr start,
                   std::size_t bytes, bool write, Place& into) {
  if (world.addresses.contains(start)) {
    if (!covers(world, context, user, start, bytes, write)) return CUresult::kInvalidValue;
    into = Place{world.addresses.alias(start)};
    return CUresult::kSuccess;
  }
  std::uintptr_t first = 0;
  const HostRange* range = world.memory.findHost(start, &first);
  into = Place{reinterpret_cast<std::byte*>(start), true, range == nullptr};
  if (range != nullptr)
    return start + bytes <= first + range->bytes ? CUresult::kSuccess : CUresult::kInvalidValue;
  const bool usable = user == User::kCopy && !world.memory.touchesHost(start, bytes) &&
                      isHostMemory(start, bytes, write);
  return usable ? CUresult::kSuccess : CUresult::kInvalidValue;
}

}  // namespace viaduct::fakegpu
