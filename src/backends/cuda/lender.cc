#include "backends/cuda/lender.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <poll.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>
#include <span>
#include <utility>

#include "backends/cuda/peer_mapping.h"

namespace viaduct::cuda {
namespace {

Error cannotShare(std::string detail, std::string remedy = {}) {
  return {.code = Code::kUnsupported,
          .operation = "share memory of a GPU",
          .detail = std::move(detail),
          .device = "cuda",
          .remedy = std::move(remedy)};
}

Status canShare(const PinnedMemory& memory) {
  // A process that maps memory can write to it.
  if (!memory.writable) return cannotShare("the pin is read-only");
  const MemoryFacts& facts = memory.buffer->facts;
  const auto one = facts.memory_class;
  if (wayToMap(one) == nullptr)
    return cannotShare(fmt::format("{} cannot be mapped by other processes", memoryClassName(one)));
  if (one == MemoryClass::kLegacy && facts.ranges.size() != 1)
    return cannotShare("the pin covers several allocations", "pin each by itself");
  return Ok{};
}

Result<base::Fd> exported(const Context& context, const MemoryRange& range) {
  CUmemGenericAllocationHandle handle = 0;
  // NOLINTNEXTLINE(performance-no-int-to-ptr): the driver takes the address as a pointer
  void* const address = reinterpret_cast<void*>(range.base);
  VIADUCT_CUDA_CALL(context, memRetainAllocationHandle, &handle, address);
  int fd = -1;
  const CUresult done =
      context.api().memExportToShareableHandle(&fd, handle, CUmemHandleType::kPosixFd, 0);
  context.api().memRelease(handle);
  if (done != CUresult::kSuccess) return context.error(CallName::memExportToShareableHandle, done);
  return base::Fd(fd);
}

// Describes a range. For virtual memory, also appends a descriptor to `fds`.
Result<SharedRange> shared(const DeviceBuffer& buffer, const MemoryRange& range,
                           std::vector<base::Fd>& fds) {
  VIADUCT_CHECK(checkAlive(*buffer.context, range));
  SharedRange out{.base = range.base, .bytes = range.bytes, .buffer_id = range.buffer_id};
  if (buffer.facts.memory_class == MemoryClass::kShareable) {
    VIADUCT_TRY(auto fd, exported(*buffer.context, range));
    fds.push_back(std::move(fd));
    return out;
  }
  CUipcMemHandle handle;
  VIADUCT_CUDA_CALL(*buffer.context, ipcGetMemHandle, &handle, range.base);
  const auto bytes = std::as_bytes(std::span(handle.bytes));
  out.handle.assign(bytes.begin(), bytes.end());
  return out;
}

}  // namespace

void Lender::lend(std::uint64_t number, const PinnedMemory* memory) {
  const std::lock_guard lock(mutex_);
  if (host_ == nullptr) return;
  Status done = memory != nullptr && memory->isDevice()
                    ? canShare(*memory)
                    : Status(cannotShare("it is not pinned any more"));
  if (done) {
    lent_[number] = {.buffer = memory->buffer};
    done = offer(number, *memory);
  }
  if (done) return;
  // The peer also drops the ranges of this pin that were offered before the failure.
  static_cast<void>(host_->send(encode(MemoryRefused{number, done.error().text()})));
}

Status Lender::offer(std::uint64_t number, const PinnedMemory& memory) {
  const DeviceBuffer& buffer = *memory.buffer;
  VIADUCT_TRY(const auto current, Current::of(*buffer.context));
  const auto& ranges = buffer.facts.ranges;
  MemoryOffer offer{.pin = number, .all = static_cast<std::uint32_t>(ranges.size())};
  std::vector<base::Fd> fds;
  for (std::size_t i = 0; i < ranges.size(); ++i) {
    VIADUCT_TRY(auto one, shared(buffer, ranges[i], fds));
    offer.ranges.push_back(std::move(one));
    if (offer.ranges.size() < kRangesOfOffer && i + 1 < ranges.size()) continue;
    VIADUCT_CHECK(send(offer, fds));
    offer.ranges.clear();
    fds.clear();
  }
  return Ok{};
}

Status Lender::send(MemoryOffer offer, const std::vector<base::Fd>& fds) {
  std::vector<int> all;
  base::Fd peers_end;
  if (!lifeline_) {
    std::array<int, 2> ends{};
    if (::pipe2(ends.data(), O_CLOEXEC | O_NONBLOCK) != 0)
      return systemError(Code::kExhausted, "pipe2", errno);
    lifeline_.reset(ends[0]);
    peers_end.reset(ends[1]);
    offer.lifeline = true;
    all.push_back(peers_end.get());
  }
  for (const base::Fd& fd : fds) all.push_back(fd.get());
  return host_->send(encode(std::move(offer)), all);
}

void Lender::returned(std::uint64_t number) {
  const std::lock_guard lock(mutex_);
  lent_.erase(number);
}

bool Lender::takeBack(std::uint64_t number) {
  const std::lock_guard lock(mutex_);
  const auto one = lent_.find(number);
  if (one == lent_.end() || peerIsGone()) return true;
  // If the message cannot be sent, the session ends soon. Then the lifeline shows when the peer
  // maps nothing any more.
  if (!std::exchange(one->second.recalled, true) && host_ != nullptr)
    static_cast<void>(host_->send(encode(MemoryRecalled{number})));
  return false;
}

void Lender::detach() {
  const std::lock_guard lock(mutex_);
  host_ = nullptr;
}

bool Lender::settled() {
  const std::lock_guard lock(mutex_);
  const bool waits =
      host_ == nullptr
          ? !lent_.empty()
          : std::ranges::any_of(lent_, [](const auto& one) { return one.second.recalled; });
  return !waits || peerIsGone();
}

// The peer's end of the pipe closes with its last mapping, and with its process.
bool Lender::peerIsGone() {
  pollfd one{.fd = lifeline_.get(), .events = POLLIN, .revents = 0};
  return lifeline_ && ::poll(&one, 1, 0) == 1 && (one.revents & POLLHUP) != 0;
}

}  // namespace viaduct::cuda
