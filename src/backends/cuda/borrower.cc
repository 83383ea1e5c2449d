#include "backends/cuda/borrower.h"

#include <fmt/format.h>

#include <algorithm>
#include <iterator>
#include <utility>

#include "backends/cuda/peer_mapping.h"
#include "base/log.h"

namespace viaduct::cuda {
namespace {

Error protocol(const char* what) {
  return {.code = Code::kProtocol, .operation = "cuda link", .detail = what};
}

}  // namespace

void Borrower::announce(const PinInfo& info, const MemoryKey& key) {
  drop(info.slot);
  if (info.kind != MemoryKind::kDevice) return;
  LenderPin& one = announced_[info.slot];
  one.info = info;
  one.key = key;
  ++not_asked_;
  pins_[info.slot] = {.born = copier_->tick()};
  if (wayToMap(key.memory_class) == nullptr)
    refuse(one, {.code = Code::kUnsupported,
                 .operation = "map memory of a peer",
                 .detail = fmt::format("other processes cannot map {}",
                                       memoryClassName(key.memory_class)),
                 .remedy = "allocate it with cudaMalloc or Agent::allocate"});
  else if (info.access == MemoryAccess::kReadOnly)
    refuse(one, {.code = Code::kUnsupported,
                 .operation = "map memory of a peer",
                 .detail = "the pin is read-only, and who maps memory can write to it"});
}

void Borrower::drop(std::uint32_t slot) {
  const auto found = announced_.find(slot);
  if (found == announced_.end()) return;
  leave(found->second);
  pins_.erase(slot);
  if (!found->second.asked) --not_asked_;
  announced_.erase(found);
  giveBack();
}

// Returns the GPU that has the memory, if that GPU is open here. Otherwise returns any open GPU,
// because it may reach the peer's GPU over PCIe or NVLink. Null: no GPU is open, so this process
// maps nothing.
std::shared_ptr<OpenGpu> Borrower::gpuFor(const MemoryKey& key) const {
  const auto all = gpus_->all();
  const auto same = std::ranges::find_if(all, [&](const auto& gpu) {
    return std::ranges::equal(gpu->context()->device().uuid.bytes, key.gpu);
  });
  if (same != all.end()) return *same;
  return all.empty() ? nullptr : all.front();
}

std::optional<std::string_view> Borrower::reaches(const PinnedMemory& local,
                                                  std::uint32_t remote_pin) const {
  const auto one = announced_.find(remote_pin);
  const auto pin = pins_.find(remote_pin);
  if (one == announced_.end() || pin == pins_.end() || pin->second.refused) return std::nullopt;
  const PinnedMemory* const mapped = pin->second.memory.get();
  const auto gpu = gpuFor(one->second.key);
  if (!gpu || (mapped != nullptr && mapped->withdrawn())) return std::nullopt;
  if (!gpu->mayAddress(one->second.key.gpu)) return std::nullopt;
  // A mapping can be used by one GPU only.
  const Context& context = mapped != nullptr ? *mapped->buffer->context : *gpu->context();
  if (local.isDevice() && local.buffer->context->ordinal() != context.ordinal())
    return std::nullopt;
  return wayToMap(one->second.key.memory_class);
}

void Borrower::request(std::span<const core::Op> ops) {
  for (const core::Op& op : ops) {
    if (not_asked_ == 0) return;
    const auto found = announced_.find(op.remote_pin);
    if (found == announced_.end() || std::exchange(found->second.asked, true)) continue;
    --not_asked_;
    const Status sent = host_.send(encode(MemoryWanted{found->second.key.pin}));
    if (!sent) refuse(found->second, sent.error());
  }
}

Borrower::LenderPin* Borrower::find(std::uint64_t number) {
  const auto found = std::ranges::find_if(
      announced_, [&](const auto& one) { return one.second.key.pin == number; });
  return found == announced_.end() ? nullptr : &found->second;
}

Status Borrower::receive(const MemoryOffer& offer, std::vector<core::Fd> fds) {
  if (offer.lifeline) {
    if (fds.empty() || lifeline_) return protocol("a lifeline that was not expected");
    lifeline_ = std::make_shared<const core::Fd>(std::move(fds.front()));
    fds.erase(fds.begin());
  }
  LenderPin* const one = find(offer.pin);
  if (one == nullptr) {  // the peer has dropped the pin meanwhile
    say({offer.pin});
    return Ok{};
  }
  if (!lifeline_ || !one->asked || pins_[one->info.slot].memory || offer.all > kMostSharedRanges)
    return protocol("an offer that was not expected");
  std::ranges::copy(offer.ranges, std::back_inserter(one->ranges));
  std::ranges::move(fds, std::back_inserter(one->fds));
  if (one->ranges.size() < offer.all) return Ok{};
  Status mapped =
      one->ranges.size() > offer.all ? protocol("more ranges than announced") : map(*one);
  one->ranges.clear();
  one->fds.clear();
  changed_();
  if (mapped) return Ok{};
  say({offer.pin});
  if (mapped.error().code == Code::kProtocol) return mapped;
  refuse(*one, std::move(mapped).error());
  return Ok{};
}

Status Borrower::map(const LenderPin& one) {
  const auto& ranges = one.ranges;
  const std::uint64_t from = ranges.empty() ? 0 : ranges.front().base;
  const std::uint64_t to = ranges.empty() ? 0 : ranges.back().base + ranges.back().bytes;
  if (one.info.address < from || one.info.address > to || one.info.bytes > to - one.info.address)
    return protocol("an offer that does not contain its pin");
  const auto gpu = gpuFor(one.key);
  if (!gpu) return protocol("an offer that was not expected");
  VIADUCT_TRY(auto mapping, mapMemory(gpu->context(), ranges, one.fds));
  auto buffer = std::make_shared<DeviceBuffer>();
  buffer->context = gpu->context();
  buffer->facts.memory_class = one.key.memory_class;
  // The lifeline closes after the mapping, so both end together. Nobody waits for that, because an
  // ended session ends many at once.
  auto memory = endsLater(new PinnedMemory(
      Segment::gpu(gpu->context()->ordinal(), one.info.address, one.info.bytes), buffer));
  const CUdeviceptr here = mapping->address();
  memory->borrowed = {.lifeline = lifeline_, .mapping = std::move(mapping), .shift = here - from};
  pins_[one.info.slot].memory = std::move(memory);
  return Ok{};
}

void Borrower::receive(const MemoryRefused& refused) {
  LenderPin* const one = find(refused.pin);
  if (one == nullptr) return;
  one->ranges.clear();
  one->fds.clear();
  say({refused.pin});
  refuse(*one,
         {.code = Code::kUnsupported, .operation = "map memory of a peer", .detail = refused.why});
}

// Jobs that wait for the memory fail, and later transfers take another way.
void Borrower::refuse(LenderPin& one, Error why) {
  const std::string name = one.info.label.empty() ? fmt::format("{:#x}", one.info.address)
                                                  : fmt::format("\"{}\"", one.info.label);
  refusal_ = fmt::format("not {}: {}", name, why.detail);
  base::log(base::LogLevel::kInfo, "cuda: memory of a peer is {}", refusal_);
  if (!std::exchange(one.asked, true)) --not_asked_;
  pins_[one.info.slot].refused = std::move(why);
  changed_();
}

void Borrower::receive(const MemoryRecalled& recalled) {
  if (LenderPin* const one = find(recalled.pin)) leave(*one);
  const bool leaves = std::ranges::any_of(
      leaving_, [&](const LeavingPin& one) { return one.number == recalled.pin; });
  if (!leaves) say({recalled.pin});
  giveBack();
}

// No batch enters the mapping any more, and no job waits for it.
void Borrower::leave(const LenderPin& one) {
  CopierPin& pin = pins_[one.info.slot];
  if (pin.memory) {
    pin.memory->withdraw();
    leaving_.push_back({one.key.pin, std::move(pin.memory)});
  }
  if (!pin.refused)
    pin.refused = Error{.code = Code::kDenied,
                        .operation = "transfer",
                        .detail = "the peer has released the memory"};
  changed_();
}

void Borrower::giveBack() {
  std::erase_if(leaving_, [&](LeavingPin& one) {
    if (one.memory) {
      if (one.memory->inUse()) return false;
      one.closing = endLater([memory = std::exchange(one.memory, {})] {});
    }
    if (!isEnded(one.closing)) return false;
    say({one.number});
    return true;
  });
}

// Drops this link's lifeline, by which the peer notices that nothing is mapped any more. The
// lifeline closes with the last mapping.
void Borrower::close() {
  announced_.clear();
  not_asked_ = 0;
  leaving_.clear();
  lifeline_.reset();
}

}  // namespace viaduct::cuda
