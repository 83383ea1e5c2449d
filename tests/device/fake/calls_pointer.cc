// The answers of the driver about an address.
#include <cstring>

#include "device/fake/allocations.h"
#include "device/fake/call.h"

namespace viaduct::fakegpu {
namespace {

// All values of CUpointer_attribute, of which the product needs a part.
enum class Attribute : int {
  kContext = 1,
  kMemoryType = 2,
  kDevicePointer = 3,
  kHostPointer = 4,
  kSyncMemops = 6,
  kBufferId = 7,
  kIsManaged = 8,
  kDeviceOrdinal = 9,
  kIsLegacyIpcCapable = 10,
  kRangeStart = 11,
  kRangeSize = 12,
  kMapped = 13,
  kAllowedHandleTypes = 14,
  kGpuDirectRdma = 15,
  kAccessFlags = 16,
  kMempoolHandle = 17,
  kMappingSize = 18,
  kMappingStart = 19,
  kMemoryBlockId = 20,
  kHardwareDecompress = 21,
};

// Bytes of the value, or 0 for an attribute that does not exist.
std::size_t sizeOf(Attribute attribute) {
  switch (attribute) {
    case Attribute::kContext:
    case Attribute::kDevicePointer:
    case Attribute::kHostPointer:
    case Attribute::kBufferId:
    case Attribute::kRangeStart:
    case Attribute::kRangeSize:
    case Attribute::kAllowedHandleTypes:
    case Attribute::kMempoolHandle:
    case Attribute::kMappingSize:
    case Attribute::kMappingStart:
    case Attribute::kMemoryBlockId:
      return 8;
    case Attribute::kMemoryType:
    case Attribute::kSyncMemops:
    case Attribute::kIsManaged:
    case Attribute::kDeviceOrdinal:
    case Attribute::kIsLegacyIpcCapable:
    case Attribute::kMapped:
    case Attribute::kGpuDirectRdma:
    case Attribute::kAccessFlags:
    case Attribute::kHardwareDecompress:
      return 4;
    default:
      return 0;
  }
}

// A value, and whether the address has one.
struct Answer {
  std::uint64_t value = 0;
  bool known = true;
};

Answer ofBlock(const World& world, const Block& block, Attribute attribute, CUdeviceptr address) {
  const auto reserved = world.memory.reservations.find(block.reservation);
  const bool mapped = reserved != world.memory.reservations.end();
  switch (attribute) {
    case Attribute::kContext:
      return {reinterpret_cast<std::uint64_t>(block.context)};
    case Attribute::kMemoryType:
      return {std::uint64_t(CUmemoryType::kDevice)};
    case Attribute::kDevicePointer:
      return {address};
    case Attribute::kHostPointer:
      return {address, block.kind == BlockKind::kManaged};
    case Attribute::kMemoryBlockId:
    case Attribute::kBufferId:
      return {block.id};
    case Attribute::kIsManaged:
      return {block.kind == BlockKind::kManaged};
    case Attribute::kDeviceOrdinal:
      return {static_cast<std::uint64_t>(block.memory->device())};
    case Attribute::kIsLegacyIpcCapable:
      return {block.kind == BlockKind::kAllocated};
    case Attribute::kRangeStart:
      return {mapped ? reserved->first : block.start};
    case Attribute::kRangeSize:
      return {mapped ? reserved->second : block.bytes};
    case Attribute::kMapped:
      return {1};
    case Attribute::kAllowedHandleTypes:
      return {static_cast<std::uint64_t>(block.memory->types())};
    case Attribute::kAccessFlags:
      return {3};
    case Attribute::kMempoolHandle:
      return {reinterpret_cast<std::uint64_t>(block.pool)};
    case Attribute::kMappingSize:
      return {block.bytes};
    case Attribute::kMappingStart:
      return {block.start};
    default:
      return {};
  }
}

Answer ofHost(std::uintptr_t start, const HostRange& range, Attribute attribute,
              CUdeviceptr address) {
  switch (attribute) {
    case Attribute::kContext:
      return {reinterpret_cast<std::uint64_t>(range.context)};
    case Attribute::kMemoryType:
      return {std::uint64_t(CUmemoryType::kHost)};
    case Attribute::kDevicePointer:
    case Attribute::kHostPointer:
      return {address};
    case Attribute::kBufferId:
      return {range.id};
    case Attribute::kDeviceOrdinal:
      return {static_cast<std::uint64_t>(range.context->device)};
    case Attribute::kMappingStart:
    case Attribute::kRangeStart:
      return {start};
    case Attribute::kMappingSize:
    case Attribute::kRangeSize:
      return {range.bytes};
    case Attribute::kMapped:
      return {1};
    case Attribute::kAccessFlags:
      return {3};
    default:
      return {};
  }
}

// A part of a reservation without memory has a range, and nothing else.
Answer ofReservation(const World& world, Attribute attribute, CUdeviceptr address) {
  for (const auto& [start, bytes] : world.memory.reservations) {
    if (address < start || address - start >= bytes) continue;
    if (attribute == Attribute::kRangeStart) return {start};
    if (attribute == Attribute::kRangeSize) return {bytes};
    if (attribute == Attribute::kMapped) return {0};
  }
  return {0, false};
}

Answer ask(const World& world, Attribute attribute, CUdeviceptr address) {
  if (const Block* block = world.memory.find(address))
    return ofBlock(world, *block, attribute, address);
  std::uintptr_t start = 0;
  if (const HostRange* range = world.memory.findHost(address, &start))
    return ofHost(start, *range, attribute, address);
  return ofReservation(world, attribute, address);
}

// The ordinal of an unknown address is -2, as the real driver says.
void store(void* into, Attribute attribute, Answer answer) {
  constexpr std::int64_t kNoOrdinal = -2;
  if (!answer.known)
    answer.value =
        attribute == Attribute::kDeviceOrdinal ? static_cast<std::uint64_t>(kNoOrdinal) : 0;
  std::memcpy(into, &answer.value, sizeOf(attribute));
}

}  // namespace
}  // namespace viaduct::fakegpu

// NOLINTBEGIN(readability-identifier-naming): the driver's names
using namespace viaduct::fakegpu;  // NOLINT(google-build-using-namespace)

FAKE_CUDA_EXPORT CUresult cuPointerGetAttribute(void* value, CUpointerAttribute attribute,
                                                CUdeviceptr address) {
  return inProcess("cuPointerGetAttribute", [&](World& one, Lock&) {
    const auto which = static_cast<Attribute>(attribute);
    if (value == nullptr || sizeOf(which) == 0) return CUresult::kInvalidValue;
    const Answer answer = ask(one, which, address);
    if (!answer.known) return CUresult::kInvalidValue;
    store(value, which, answer);
    return CUresult::kSuccess;
  });
}

FAKE_CUDA_EXPORT CUresult cuPointerGetAttributes(unsigned count, CUpointerAttribute* attributes,
                                                 void** values, CUdeviceptr address) {
  return inProcess("cuPointerGetAttributes", [&](World& one, Lock&) {
    for (unsigned i = 0; i < count; ++i)
      if (sizeOf(static_cast<Attribute>(attributes[i])) == 0) return CUresult::kInvalidValue;
    for (unsigned i = 0; i < count; ++i) {
      const auto which = static_cast<Attribute>(attributes[i]);
      store(values[i], which, ask(one, which, address));
    }
    return CUresult::kSuccess;
  });
}

FAKE_CUDA_EXPORT CUresult cuPointerSetAttribute(const void*, CUpointerAttribute attribute,
                                                CUdeviceptr address) {
  return inContext("cuPointerSetAttribute", [&](World& one, Lock&, Context&) {
    const Block* block = one.memory.find(address);
    const bool known =
        static_cast<Attribute>(attribute) == Attribute::kSyncMemops && block != nullptr;
    return known ? CUresult::kSuccess : CUresult::kInvalidValue;
  });
}
// NOLINTEND(readability-identifier-naming)
