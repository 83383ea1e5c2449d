#include "cuda/memory.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <utility>

#include "cuda/driver_thread.h"

namespace viaduct::cuda {
namespace {

// PyTorch's expandable memory has a range for each 2 MiB or 20 MiB. The limit is enough for 1 TiB
// in ranges of 20 MiB.
constexpr std::size_t kMostRanges = 65536;

// The driver's facts about one address.
struct PointerFacts {
  MemoryClass memory_class = MemoryClass::kHost;
  int device = 0;
  MemoryRange range = {};
};

Result<PointerFacts> ask(const Context& context, CUdeviceptr address) {
  using enum CUpointerAttribute;
  std::array attributes{kMemoryType, kDeviceOrdinal, kIsLegacyIpcCapable, kBufferId,
                        kIsManaged,  kMempoolHandle, kAllowedHandleTypes};
  // The driver writes 1, 4 or 8 bytes of each value, and leaves the value of an unknown attribute
  // at 0.
  std::array<std::uint64_t, attributes.size()> values{};
  std::array<void*, attributes.size()> places{};
  std::ranges::transform(values, places.begin(), [](std::uint64_t& one) { return &one; });
  VIADUCT_CUDA_CALL(context, pointerGetAttributes, static_cast<unsigned>(attributes.size()),
                    attributes.data(), places.data(), address);
  const auto& [type, device, legacy, id, managed, pool, handle_types] = values;
  const auto allows = [types = handle_types](CUmemHandleType one) {
    return (types & static_cast<std::uint64_t>(one)) != 0;
  };
  PointerFacts out{.device = static_cast<int>(device), .range = {.buffer_id = id}};
  using enum MemoryClass;
  if (managed != 0)
    out.memory_class = kManaged;
  else if (type != static_cast<std::uint64_t>(CUmemoryType::kDevice))
    out.memory_class = kHost;
  else if (pool != 0)
    out.memory_class = kPool;
  else if (legacy != 0)
    out.memory_class = kLegacy;
  else if (allows(CUmemHandleType::kPosixFd))
    out.memory_class = kShareable;
  else
    out.memory_class = allows(CUmemHandleType::kFabric) ? kFabric : kPrivate;
  if (out.memory_class == kHost) return out;
  // kRangeStart and kRangeSize are those of the whole reservation, of which a part may be unmapped.
  std::size_t bytes = 0;
  VIADUCT_CUDA_CALL(context, memGetAddressRange, &out.range.base, &bytes, address);
  out.range.bytes = bytes;
  return out;
}

Error notOneMemory(const Context& context, CUdeviceptr address, std::uint64_t bytes,
                   std::string detail) {
  return {.code = Code::kInvalid,
          .operation = "classify memory",
          .detail = fmt::format("{} bytes at {:#x}: {}", bytes, address, detail),
          .device = context.device().name,
          .remedy = "pass memory of one allocation, or of one expandable segment"};
}

}  // namespace

std::string_view memoryClassName(MemoryClass one) {
  switch (one) {
    case MemoryClass::kHost:
      return "host memory";
    case MemoryClass::kLegacy:
      return "cuMemAlloc";
    case MemoryClass::kShareable:
      return "virtual memory with file descriptors";
    case MemoryClass::kFabric:
      return "virtual memory with fabric handles";
    case MemoryClass::kPool:
      return "a memory pool";
    case MemoryClass::kManaged:
      return "managed memory";
    case MemoryClass::kPrivate:
      return "virtual memory without a shareable handle";
  }
  return "unknown";
}

Result<MemoryFacts> classify(const Context& context, CUdeviceptr address, std::uint64_t bytes) {
  if (bytes == 0 || address == 0 || address + bytes < address)
    return notOneMemory(context, address, bytes, "the range is empty or wraps around");
  VIADUCT_TRY(const auto current, Current::of(context));
  MemoryFacts out;
  for (CUdeviceptr at = address; at < address + bytes;) {
    VIADUCT_TRY(const PointerFacts facts, ask(context, at));
    const bool first = at == address;
    if (facts.memory_class == MemoryClass::kHost) {
      if (first) return out;
      return notOneMemory(context, address, bytes, fmt::format("it ends at {:#x}", at));
    }
    if (first) {
      out.memory_class = facts.memory_class;
      out.device = static_cast<std::uint32_t>(facts.device);
    } else if (facts.memory_class != out.memory_class ||
               static_cast<std::uint32_t>(facts.device) != out.device) {
      return notOneMemory(context, address, bytes,
                          fmt::format("from {:#x} on it is other memory", at));
    }
    const CUdeviceptr end = facts.range.base + facts.range.bytes;
    if (end <= at || out.ranges.size() == kMostRanges)
      return notOneMemory(context, address, bytes, "the driver does not know its ranges");
    out.ranges.push_back(facts.range);
    at = end;
  }
  return out;
}

Result<std::uint64_t> bufferId(const Context& context, CUdeviceptr address) {
  std::uint64_t id = 0;
  const CUresult got =
      context.api().pointerGetAttribute(&id, CUpointerAttribute::kBufferId, address);
  if (got == CUresult::kSuccess) return id;
  Error why = context.error(CallName::pointerGetAttribute, got);
  if (got == CUresult::kInvalidValue) why.code = Code::kDenied;
  return why;
}

Status checkAlive(const Context& context, const MemoryRange& range) {
  const auto id = bufferId(context, range.base);
  if (id && *id == range.buffer_id) return Ok{};
  if (!id && id.error().code != Code::kDenied) return id.error();
  return Error{.code = Code::kDenied,
               .operation = CallName::pointerGetAttribute,
               .detail = fmt::format("the memory at {:#x} was freed since it was pinned: its "
                                     "BUFFER_ID was {}, and now {}",
                                     range.base, range.buffer_id,
                                     id ? fmt::format("it is {}", *id) : "there is none"),
               .device = context.device().name,
               .cause = id ? "" : id.error().operation + ": " + id.error().detail,
               .remedy = "release the pin before the memory is freed"};
}

Result<std::shared_ptr<const Allocation>> Allocation::make(std::shared_ptr<const Context> context,
                                                           std::uint64_t bytes) {
  const auto out = endsSoon(new Allocation(std::move(context)));
  out->bytes_ = bytes;
  VIADUCT_TRY(const auto current, Current::of(*out->context_));
  VIADUCT_CHECK(out->context_->device().posix_fd ? out->makeShareable() : out->makeLegacy());
  return std::shared_ptr<const Allocation>(out);
}

Status Allocation::makeLegacy() {
  VIADUCT_CUDA_CALL(*context_, memAlloc, &address_, bytes_);
  return Ok{};
}

Status Allocation::makeShareable() {
  const Context& context = *context_;
  const CUmemAllocationProp properties{
      .requested_handle_types = CUmemHandleType::kPosixFd,
      .location = {CUmemLocationType::kDevice, context.device().handle},
      .gpu_direct_rdma_capable = static_cast<unsigned char>(context.device().gpu_direct ? 1 : 0)};
  std::size_t step = 0;
  VIADUCT_CUDA_CALL(context, memGetAllocationGranularity, &step, &properties,
                    CUmemGranularity::kMinimum);
  const std::uint64_t all = (bytes_ + step - 1) / step * step;
  VIADUCT_CUDA_CALL(context, memAddressReserve, &address_, all, 0, 0, 0);
  reserved_ = all;
  CUmemGenericAllocationHandle memory = 0;
  VIADUCT_CUDA_CALL(context, memCreate, &memory, all, &properties, 0);
  const CUresult mapped = context.api().memMap(address_, all, 0, memory, 0);
  context.api().memRelease(memory);  // the mapping keeps it
  if (mapped != CUresult::kSuccess) return context.error(CallName::memMap, mapped);
  mapped_ = true;
  return setAccess(context, address_, all);
}

Allocation::~Allocation() {
  const auto current = Current::of(*context_);
  if (!current || address_ == 0) return;
  const Api& api = context_->api();
  if (reserved_ == 0) {
    api.memFree(address_);
    return;
  }
  if (mapped_) api.memUnmap(address_, reserved_);
  api.memAddressFree(address_, reserved_);
}

Status setAccess(const Context& context, CUdeviceptr base, std::uint64_t bytes) {
  std::vector<CUmemAccessDesc> who;
  for (std::uint32_t one = 0; one < context.driver().devices(); ++one) {
    const auto device = static_cast<CUdevice>(one);
    int can = device == context.device().handle ? 1 : 0;
    if (can == 0)
      VIADUCT_CUDA_CALL(context, deviceCanAccessPeer, &can, device, context.device().handle);
    if (can != 0)
      who.push_back({{CUmemLocationType::kDevice, device}, CUmemAccessFlags::kReadWrite});
  }
  VIADUCT_CUDA_CALL(context, memSetAccess, base, bytes, who.data(), who.size());
  return Ok{};
}

Status copyToDevice(const Context& context, CUdeviceptr to, std::span<const std::byte> from) {
  VIADUCT_TRY(const auto current, Current::of(context));
  VIADUCT_CUDA_CALL(context, memcpySync, to, reinterpret_cast<std::uintptr_t>(from.data()),
                    from.size());
  // The copy from pageable memory may return before its last part has arrived.
  VIADUCT_CUDA_CALL(context, streamSynchronize, nullptr);
  return Ok{};
}

Status copyToHost(const Context& context, std::span<std::byte> to, CUdeviceptr from) {
  VIADUCT_TRY(const auto current, Current::of(context));
  VIADUCT_CUDA_CALL(context, memcpySync, reinterpret_cast<std::uintptr_t>(to.data()), from,
                    to.size());
  return Ok{};
}

}  // namespace viaduct::cuda
