#include "backends/cuda/peer_mapping.h"

#include <algorithm>
#include <cstring>
#include <map>
#include <tuple>
#include <utility>

#include "base/guarded.h"
#include "cuda/driver_thread.h"

namespace viaduct::cuda {
namespace {

Error protocol(const char* what) {
  return {.code = Code::kProtocol, .operation = "map memory of a peer", .detail = what};
}

// A peer's allocation, opened by its legacy handle.
class LegacyMapping final : public PeerMapping {
 public:
  explicit LegacyMapping(std::shared_ptr<const Context> context) : context_(std::move(context)) {}
  LegacyMapping(const LegacyMapping&) = delete;
  LegacyMapping& operator=(const LegacyMapping&) = delete;
  ~LegacyMapping() override {
    const auto current = Current::of(*context_);
    if (current && address_ != 0) context_->api().ipcCloseMemHandle(address_);
  }
  // Fails if the allocation has fewer bytes: a copy beyond its end would break the context.
  Status open(const CUipcMemHandle& handle, std::uint64_t bytes) {
    VIADUCT_TRY(const auto current, Current::of(*context_));
    const auto open = [&] {
      return context_->api().ipcOpenMemHandle(&address_, handle, kIpcLazyPeerAccess);
    };
    CUresult opened = open();
    if (opened == CUresult::kAlreadyMapped) {  // the last mapping is being closed
      awaitEnds();
      opened = open();
    }
    if (opened != CUresult::kSuccess) return context_->error(CallName::ipcOpenMemHandle, opened);
    CUdeviceptr start = 0;
    std::size_t there = 0;
    VIADUCT_CUDA_CALL(*context_, memGetAddressRange, &start, &there, address_);
    if (start != address_ || there < bytes) return protocol("an allocation that is too short");
    return Ok{};
  }

 private:
  const std::shared_ptr<const Context> context_;
};

// Virtual memory of a peer, mapped at one contiguous range of addresses.
class VirtualMapping final : public PeerMapping {
 public:
  VirtualMapping(std::shared_ptr<const Context> context, std::uint64_t bytes)
      : context_(std::move(context)), bytes_(bytes) {}
  VirtualMapping(const VirtualMapping&) = delete;
  VirtualMapping& operator=(const VirtualMapping&) = delete;
  ~VirtualMapping() override {
    const auto current = Current::of(*context_);
    if (!current || address_ == 0) return;
    CUdeviceptr at = address_;
    for (const std::uint64_t bytes : mapped_) {
      context_->api().memUnmap(at, bytes);
      at += bytes;
    }
    context_->api().memAddressFree(address_, bytes_);
  }
  Status map(std::span<const SharedRange> ranges, std::span<const base::Fd> fds) {
    VIADUCT_TRY(const auto current, Current::of(*context_));
    VIADUCT_CUDA_CALL(*context_, memAddressReserve, &address_, bytes_, 0, 0, 0);
    CUdeviceptr at = address_;
    for (std::size_t i = 0; i < ranges.size(); ++i) {
      VIADUCT_CHECK(mapOne(at, ranges[i].bytes, fds[i].get()));
      at += ranges[i].bytes;
    }
    const CUmemAccessDesc access{{CUmemLocationType::kDevice, context_->device().handle},
                                 CUmemAccessFlags::kReadWrite};
    VIADUCT_CUDA_CALL(*context_, memSetAccess, address_, bytes_, &access, 1);
    return Ok{};
  }

 private:
  Status mapOne(CUdeviceptr at, std::uint64_t bytes, int fd) {
    CUmemGenericAllocationHandle memory = 0;
    // NOLINTNEXTLINE(performance-no-int-to-ptr): the driver takes the descriptor as a pointer
    void* const shareable = reinterpret_cast<void*>(static_cast<std::uintptr_t>(fd));
    VIADUCT_CUDA_CALL(*context_, memImportFromShareableHandle, &memory, shareable,
                      CUmemHandleType::kPosixFd);
    const CUresult done = context_->api().memMap(at, bytes, 0, memory, 0);
    context_->api().memRelease(memory);  // the mapping keeps it
    if (done != CUresult::kSuccess) return context_->error(CallName::memMap, done);
    mapped_.push_back(bytes);
    return Ok{};
  }

  const std::shared_ptr<const Context> context_;
  const std::uint64_t bytes_;
  std::vector<std::uint64_t> mapped_;
};

// The open legacy handles of this process: a context can open each only once. The key has the
// device, the handle and the BUFFER_ID.
using LegacyKey = std::tuple<CUdevice, base::Bytes, std::uint64_t>;
base::Guarded<std::map<LegacyKey, std::weak_ptr<const PeerMapping>>>& opened() {
  static base::Guarded<std::map<LegacyKey, std::weak_ptr<const PeerMapping>>> all;
  return all;
}

Result<std::shared_ptr<const PeerMapping>> openLegacy(const std::shared_ptr<const Context>& context,
                                                      const SharedRange& range) {
  CUipcMemHandle handle;
  if (range.handle.size() != handle.bytes.size()) return protocol("a handle of the wrong length");
  std::memcpy(handle.bytes.data(), range.handle.data(), handle.bytes.size());
  return opened().with([&](auto& all) -> Result<std::shared_ptr<const PeerMapping>> {
    std::erase_if(all, [](const auto& one) { return one.second.expired(); });
    auto& known = all[{context->device().handle, range.handle, range.buffer_id}];
    if (auto live = known.lock()) return live;
    auto fresh = endsSoon(new LegacyMapping(context));
    VIADUCT_CHECK(fresh->open(handle, range.bytes));
    known = fresh;
    return std::shared_ptr<const PeerMapping>(std::move(fresh));
  });
}

}  // namespace

Result<std::shared_ptr<const PeerMapping>> mapMemory(const std::shared_ptr<const Context>& context,
                                                     std::span<const SharedRange> ranges,
                                                     std::span<const base::Fd> fds) {
  if (ranges.empty()) return protocol("an offer without ranges");
  for (std::size_t i = 1; i < ranges.size(); ++i)
    if (ranges[i].base != ranges[i - 1].base + ranges[i - 1].bytes)
      return protocol("ranges that do not touch");
  if (fds.empty()) {
    if (ranges.size() != 1) return protocol("several legacy handles");
    return openLegacy(context, ranges[0]);
  }
  if (fds.size() != ranges.size()) return protocol("not one descriptor for each range");
  if (!context->device().posix_fd)
    return Error{.code = Code::kUnsupported,
                 .operation = "map memory of a peer",
                 .detail = "this GPU cannot map descriptors",
                 .device = context->device().name};
  const std::uint64_t bytes = ranges.back().base + ranges.back().bytes - ranges.front().base;
  auto out = endsSoon(new VirtualMapping(context, bytes));
  VIADUCT_CHECK(out->map(ranges, fds));
  return std::shared_ptr<const PeerMapping>(std::move(out));
}

}  // namespace viaduct::cuda
