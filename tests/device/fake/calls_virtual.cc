// Virtual memory management: memory, reserved addresses, and mappings between them.
#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <cstring>
#include <vector>

#include "device/fake/allocations.h"
#include "device/fake/call.h"
#include "device/fake/exported.h"

namespace viaduct::fakegpu {
namespace {

template <class Body>
CUresult inVirtual(const char* call, Body body) {
  return inProcess(call, [&](World& one, Lock& lock) {
    return one.configuration.virtual_memory ? body(one, lock) : CUresult::kNotSupported;
  });
}

bool inDevicePages(std::uint64_t a, std::uint64_t b = 0) {
  return a % kDevicePage == 0 && b % kDevicePage == 0;
}

CUresult check(const World& world, const CUmemAllocationProp& properties) {
  const auto types = static_cast<unsigned>(properties.requested_handle_types);
  constexpr unsigned kKnown = 1 | 8;
  if (properties.type != CUmemAllocationType::kPinned || (types & ~kKnown) != 0 ||
      properties.location.type != CUmemLocationType::kDevice)
    return CUresult::kInvalidValue;
  if (!world.has(properties.location.id)) return CUresult::kInvalidDevice;
  const bool fabric = (types & static_cast<unsigned>(CUmemHandleType::kFabric)) != 0;
  return fabric && !world.configuration.fabric ? CUresult::kNotPermitted : CUresult::kSuccess;
}

// The start of the reservation that has all of the range, or 0.
CUdeviceptr reservationOf(const World& world, CUdeviceptr address, std::size_t bytes) {
  for (const auto& [start, length] : world.memory.reservations)
    if (address >= start && address + bytes <= start + length) return start;
  return 0;
}

bool anyMapped(const World& world, CUdeviceptr address, std::size_t bytes) {
  const auto next = world.memory.blocks().lower_bound(address);
  return world.memory.find(address) != nullptr ||
         (next != world.memory.blocks().end() && next->first < address + bytes);
}

// The mappings that make up a range. Empty: the range does not consist of whole mappings.
std::vector<CUdeviceptr> mappingsOf(const World& world, CUdeviceptr address, std::size_t bytes) {
  std::vector<CUdeviceptr> starts;
  CUdeviceptr at = address;
  while (at < address + bytes) {
    const Block* block = world.memory.find(at);
    if (block == nullptr || block->start != at || block->kind != BlockKind::kMapped) return {};
    starts.push_back(at);
    at += block->bytes;
  }
  return at == address + bytes ? starts : std::vector<CUdeviceptr>{};
}

CUresult map(World& world, CUdeviceptr address, std::size_t bytes,
             const std::shared_ptr<Memory>& memory) {
  const CUdeviceptr reservation = reservationOf(world, address, bytes);
  if (reservation == 0 || anyMapped(world, address, bytes)) return CUresult::kInvalidValue;
  if (!world.addresses.map(address, bytes, memory->file(), false)) return CUresult::kMapFailed;
  Block block;
  block.start = address;
  block.bytes = bytes;
  block.kind = BlockKind::kMapped;
  block.memory = memory;
  block.reservation = reservation;
  world.memory.add(std::move(block));
  return CUresult::kSuccess;
}

void setBit(std::uint64_t& bits, int bit, bool set) {
  const std::uint64_t mask = std::uint64_t{1} << bit;
  bits = set ? bits | mask : bits & ~mask;
}

CUresult setAccess(World& world, Block& block, const CUmemAccessDesc& access) {
  const int device = access.location.id;
  if (access.location.type != CUmemLocationType::kDevice || !world.has(device))
    return CUresult::kInvalidDevice;
  if (device != block.memory->device() && !world.configuration.peers)
    return CUresult::kInvalidDevice;
  setBit(block.reading, device, access.flags != CUmemAccessFlags::kNone);
  setBit(block.writing, device, access.flags == CUmemAccessFlags::kReadWrite);
  return CUresult::kSuccess;
}

CUresult exportFile(const Memory& memory, void* into) {
  const int file = ::fcntl(memory.file(), F_DUPFD_CLOEXEC, 0);
  if (file < 0) return CUresult::kOperatingSystem;
  std::memcpy(into, &file, sizeof file);
  return CUresult::kSuccess;
}

CUresult exportFabric(const Memory& memory, void* into) {
  const Exported exported = exportOf(memory, memory.bytes());
  std::memset(into, 0, sizeof(CUipcMemHandle));
  std::memcpy(into, &exported, sizeof exported);
  return CUresult::kSuccess;
}

// The caller keeps its descriptor.
std::shared_ptr<Memory> importFile(void* shareable) {
  const int file =
      ::fcntl(static_cast<int>(reinterpret_cast<std::intptr_t>(shareable)), F_DUPFD_CLOEXEC, 0);
  auto memory = file < 0 ? nullptr : Memory::adopt(file);
  if (memory == nullptr && file >= 0) ::close(file);
  return memory;
}

std::shared_ptr<Memory> importFabric(const void* shareable) {
  Exported from;
  std::memcpy(&from, shareable, sizeof from);
  return openExported(from);
}

}  // namespace
}  // namespace viaduct::fakegpu

// NOLINTBEGIN(readability-identifier-naming): the driver's names
using namespace viaduct::fakegpu;  // NOLINT(google-build-using-namespace)

FAKE_CUDA_EXPORT CUresult cuMemGetAllocationGranularity(std::size_t* bytes,
                                                        const CUmemAllocationProp* properties,
                                                        CUmemGranularity) {
  return inVirtual("cuMemGetAllocationGranularity", [&](World& one, Lock&) {
    *bytes = kDevicePage;
    return check(one, *properties);
  });
}

FAKE_CUDA_EXPORT CUresult cuMemCreate(CUmemGenericAllocationHandle* handle, std::size_t bytes,
                                      const CUmemAllocationProp* properties, std::uint64_t flags) {
  return inVirtual("cuMemCreate", [&](World& one, Lock&) {
    if (flags != 0 || bytes == 0 || !inDevicePages(bytes)) return CUresult::kInvalidValue;
    CUresult result = check(one, *properties);
    if (result != CUresult::kSuccess) return result;
    std::shared_ptr<Memory> memory;
    result =
        newMemory(one, properties->location.id, bytes, properties->requested_handle_types, memory);
    if (result == CUresult::kSuccess)
      *handle = one.handles.add<CUmemGenericAllocationHandle>(std::move(memory));
    return result;
  });
}

// Mappings keep the memory.
FAKE_CUDA_EXPORT CUresult cuMemRelease(CUmemGenericAllocationHandle handle) {
  return inVirtual("cuMemRelease", [&](World& one, Lock&) {
    if (one.handles.find(handle) == nullptr) return CUresult::kInvalidValue;
    one.handles.remove(handle);
    return CUresult::kSuccess;
  });
}

FAKE_CUDA_EXPORT CUresult cuMemRetainAllocationHandle(CUmemGenericAllocationHandle* handle,
                                                      void* address) {
  return inVirtual("cuMemRetainAllocationHandle", [&](World& one, Lock&) {
    const Block* block = one.memory.find(reinterpret_cast<CUdeviceptr>(address));
    if (block == nullptr || block->kind != BlockKind::kMapped) return CUresult::kInvalidValue;
    *handle = one.handles.add<CUmemGenericAllocationHandle>(block->memory);
    return CUresult::kSuccess;
  });
}

FAKE_CUDA_EXPORT CUresult cuMemGetAllocationPropertiesFromHandle(
    CUmemAllocationProp* properties, CUmemGenericAllocationHandle handle) {
  return inVirtual("cuMemGetAllocationPropertiesFromHandle", [&](World& one, Lock&) {
    const auto memory = one.handles.find(handle);
    if (memory == nullptr) return CUresult::kInvalidValue;
    *properties = CUmemAllocationProp{};
    properties->requested_handle_types = memory->types();
    properties->location = CUmemLocation{CUmemLocationType::kDevice, memory->device()};
    return CUresult::kSuccess;
  });
}

FAKE_CUDA_EXPORT CUresult cuMemAddressReserve(CUdeviceptr* address, std::size_t bytes,
                                              std::size_t alignment, CUdeviceptr wish,
                                              std::uint64_t flags) {
  return inVirtual("cuMemAddressReserve", [&](World& one, Lock&) {
    const bool power = (alignment & (alignment - 1)) == 0;
    if (flags != 0 || bytes == 0 || !inDevicePages(bytes) || !power) return CUresult::kInvalidValue;
    const CUdeviceptr start = one.addresses.take(bytes, std::max(alignment, kDevicePage), wish);
    if (start == 0) return CUresult::kOutOfMemory;
    one.memory.reservations[start] = bytes;
    *address = start;
    return CUresult::kSuccess;
  });
}

FAKE_CUDA_EXPORT CUresult cuMemAddressFree(CUdeviceptr address, std::size_t bytes) {
  return inVirtual("cuMemAddressFree", [&](World& one, Lock&) {
    const auto reserved = one.memory.reservations.find(address);
    if (reserved == one.memory.reservations.end() || reserved->second != bytes ||
        anyMapped(one, address, bytes))
      return CUresult::kInvalidValue;
    one.memory.reservations.erase(reserved);
    one.addresses.give(address);
    return CUresult::kSuccess;
  });
}

FAKE_CUDA_EXPORT CUresult cuMemMap(CUdeviceptr address, std::size_t bytes, std::size_t offset,
                                   CUmemGenericAllocationHandle handle, std::uint64_t flags) {
  return inVirtual("cuMemMap", [&](World& one, Lock&) {
    const auto memory = one.handles.find(handle);
    const bool fits = memory != nullptr && bytes != 0 && bytes <= memory->bytes();
    if (flags != 0 || offset != 0 || !fits || !inDevicePages(address, bytes))
      return CUresult::kInvalidValue;
    return map(one, address, bytes, memory);
  });
}

FAKE_CUDA_EXPORT CUresult cuMemUnmap(CUdeviceptr address, std::size_t bytes) {
  return inVirtual("cuMemUnmap", [&](World& one, Lock& lock) {
    drain(one, lock);
    const auto starts = mappingsOf(one, address, bytes);
    if (starts.empty()) return CUresult::kInvalidValue;
    for (const CUdeviceptr start : starts) removeBlock(one, start);
    return CUresult::kSuccess;
  });
}

FAKE_CUDA_EXPORT CUresult cuMemSetAccess(CUdeviceptr address, std::size_t bytes,
                                         const CUmemAccessDesc* access, std::size_t count) {
  return inVirtual("cuMemSetAccess", [&](World& one, Lock&) {
    const auto starts = mappingsOf(one, address, bytes);
    if (starts.empty()) return CUresult::kInvalidValue;
    for (const CUdeviceptr start : starts)
      for (std::size_t i = 0; i < count; ++i) {
        const CUresult set = setAccess(one, *one.memory.find(start), access[i]);
        if (set != CUresult::kSuccess) return set;
      }
    return CUresult::kSuccess;
  });
}

FAKE_CUDA_EXPORT CUresult cuMemExportToShareableHandle(void* shareable,
                                                       CUmemGenericAllocationHandle handle,
                                                       CUmemHandleType type, std::uint64_t flags) {
  return inVirtual("cuMemExportToShareableHandle", [&](World& one, Lock&) {
    const auto memory = one.handles.find(handle);
    if (flags != 0 || memory == nullptr || !memory->exportsAs(type)) return CUresult::kInvalidValue;
    return type == CUmemHandleType::kPosixFd ? exportFile(*memory, shareable)
                                             : exportFabric(*memory, shareable);
  });
}

FAKE_CUDA_EXPORT CUresult cuMemImportFromShareableHandle(CUmemGenericAllocationHandle* handle,
                                                         void* shareable, CUmemHandleType type) {
  return inVirtual("cuMemImportFromShareableHandle", [&](World& one, Lock&) {
    auto memory =
        type == CUmemHandleType::kPosixFd ? importFile(shareable) : importFabric(shareable);
    if (memory == nullptr || !memory->exportsAs(type)) return CUresult::kInvalidValue;
    if (!one.has(memory->device())) return CUresult::kInvalidDevice;
    *handle = one.handles.add<CUmemGenericAllocationHandle>(std::move(memory));
    return CUresult::kSuccess;
  });
}
// NOLINTEND(readability-identifier-naming)
