#include "agent/basis/pins.h"

#include <fmt/format.h>

#include <algorithm>
#include <optional>
#include <utility>

#include "agent/session/messages.h"
#include "base/memory_access.h"

namespace viaduct::agent {
namespace {

constexpr std::uint64_t kLimit = std::uint64_t{1} << 63U;  // no segment ends beyond it

Status checkSegment(const Segment& memory) {
  const auto bad = [](std::string detail, std::string remedy) {
    return Error{.code = Code::kInvalid,
                 .operation = "pin",
                 .detail = std::move(detail),
                 .remedy = std::move(remedy)};
  };
  if (memory.bytes == 0) return bad("the segment has 0 bytes", "pin at least one byte");
  if (memory.bytes >= kLimit || memory.address >= kLimit || memory.address + memory.bytes > kLimit)
    return bad(fmt::format("a segment of {} bytes at {:#x} ends beyond 2^63", memory.bytes,
                           memory.address),
               "check for a negative size or a corrupted address");
  if (memory.kind == MemoryKind::kHost && memory.address == 0)
    return bad("host memory at address 0", "check the allocation");
  return Ok{};
}

Result<base::Bytes> pinAt(core::Backend& backend, const core::Audience& audience,
                          std::uint32_t slot, const Segment& memory) {
  const auto& kinds = backend.can().memory;
  if (std::find(kinds.begin(), kinds.end(), memory.kind) != kinds.end())
    return backend.pinFor(audience, slot, memory);
  return Error{.code = Code::kUnsupported,
               .operation = "pin",
               .detail = fmt::format("{} memory cannot go this way", memoryKindName(memory.kind)),
               .device = std::string(backend.can().name)};
}

bool isBusy(const Status& status) { return !status && status.error().code == Code::kBusy; }

}  // namespace

Result<Segment> checkedSegment(Segment memory) {
  VIADUCT_CHECK(checkSegment(memory));
  if (memory.access == MemoryAccess::kWriteOnly)
    return Error{.code = Code::kInvalid,
                 .operation = "pin",
                 .detail = "no pin is write-only for every peer",
                 .remedy = "pin it for reading and writing, and export a Card that grants writing"};
  if (memory.kind != MemoryKind::kHost) return memory;
  VIADUCT_TRY(const auto allowed, base::memoryAccess(memory.address, memory.bytes));
  if (allowed == MemoryAccess::kReadOnly) memory.access = allowed;
  return memory;
}

// The addresses of live pins of storage, each with its end, in ascending order.
std::vector<std::pair<std::uint64_t, std::uint64_t>> PinTable::storageRanges() const {
  std::vector<std::pair<std::uint64_t, std::uint64_t>> ranges;
  for (const PinEntry& entry : slots_)
    if (isStorage(entry.info.kind))
      ranges.emplace_back(entry.info.address, entry.info.address + entry.info.bytes);
  std::sort(ranges.begin(), ranges.end());
  return ranges;
}

// Returns the next unused range of addresses for storage, which begins at the same offset in a page
// as the storage in its file. At the end of all addresses it begins again, and skips live pins.
std::optional<std::uint64_t> PinTable::addressFor(const Segment& storage) {
  constexpr std::uint64_t kPage = 4096;
  const std::uint64_t into_page = storage.fd_offset % kPage;
  const auto after = [](std::uint64_t end) { return (end + kPage - 1) / kPage * kPage; };
  const std::uint64_t bytes = into_page + storage.bytes;
  if (storage.bytes > kLimit - kFirstStorageAddress - kPage) return std::nullopt;
  if (bytes > kLimit - next_storage_) {
    next_storage_ = kFirstStorageAddress;
    wrapped_ = true;
  }
  if (wrapped_) {
    for (const auto& [low, high] : storageRanges())
      if (low < next_storage_ + bytes && high > next_storage_) next_storage_ = after(high);
    if (bytes > kLimit - next_storage_) return std::nullopt;
  }
  const std::uint64_t address = next_storage_ + into_page;
  next_storage_ = after(next_storage_ + bytes);
  return address;
}

Status PinTable::checkRoom(const std::string& label) const {
  if (label.size() > kMaxLabelBytes)
    return Error{
        .code = Code::kInvalid,
        .operation = "pin",
        .detail = fmt::format("a label of {} bytes; the limit is {}", label.size(), kMaxLabelBytes),
        .remedy = "choose a shorter label"};
  if (free_.empty() && slots_.size() >= kMaxPins)
    return Error{
        .code = Code::kExhausted,
        .operation = "pin",
        .detail = fmt::format("{} segments are pinned, the most that peers accept", kMaxPins),
        .remedy = "release some, or pin neighbours in one piece"};
  return Ok{};
}

Status PinTable::giveAddress(Segment& memory) {
  if (!isStorage(memory.kind)) return Ok{};
  const auto address = addressFor(memory);
  if (!address)
    return Error{.code = Code::kExhausted,
                 .operation = "pin",
                 .detail = fmt::format("no range of {} addresses is free", memory.bytes),
                 .remedy = "release pins of files and objects, or pin smaller parts"};
  memory.address = *address;
  return Ok{};
}

// The keys of all backends. An error if none can reach the memory.
Result<PinTable::Keys> PinTable::pinAtBackends(const core::Audience& audience, std::uint32_t slot,
                                               const Segment& memory) {
  Keys keys;
  keys.reserve(backends_.size());
  std::string refusals;
  bool taken = false;
  for (const auto& backend : backends_) {
    auto key = pinAt(*backend, audience, slot, memory);
    taken = taken || key.has_value();
    if (!key) refusals += fmt::format("{}{}", refusals.empty() ? "" : "; ", key.error().text());
    keys.push_back(key ? std::optional(*std::move(key)) : std::nullopt);
  }
  if (taken) return keys;
  return Error{.code = Code::kUnsupported,
               .operation = "pin",
               .detail = refusals.empty() ? "no backend is open" : refusals};
}

// Fills the slot. If the budget for announced pins has no room for this one, withdraws the pin and
// returns an error.
Result<std::uint32_t> PinTable::fill(std::uint32_t slot, PinEntry entry) {
  if (free_.empty())
    slots_.emplace_back();
  else
    free_.pop_back();
  const std::size_t cost = message(entry).cost();
  const bool fits = announced_.take(cost);
  if (fits) entry.cost = cost;
  slots_[slot] = std::move(entry);
  if (slots_[slot].isShared()) {
    ++live_;
    live_bytes_ += slots_[slot].info.bytes;
    ++version_;
  }
  if (fits) return slot;
  retire(slot);
  if (isBusy(remove(slot))) withdrawing_.push_back(slot);
  Error why = announced_.refusal("pin", cost, "this agent's registrations at a peer", "");
  why.remedy = "release some, give shorter labels, or pin larger segments";
  return why;
}

Result<std::uint32_t> PinTable::add(Segment memory, std::string label,
                                    const core::Audience& audience) {
  VIADUCT_CHECK(checkRoom(label));
  VIADUCT_CHECK(giveAddress(memory));
  std::erase_if(withdrawing_, [this](std::uint32_t old) { return !isBusy(remove(old)); });
  const auto slot = free_.empty() ? static_cast<std::uint32_t>(slots_.size()) : free_.back();
  VIADUCT_TRY(auto keys, pinAtBackends(audience, slot, memory));
  return fill(slot, {.info = {.label = std::move(label),
                              .kind = memory.kind,
                              .device = memory.device,
                              .address = memory.address,
                              .bytes = memory.bytes,
                              .slot = slot,
                              .access = memory.access},
                     .generation = ++last_generation_,
                     .keys = std::move(keys),
                     .audience = audience});
}

Status PinTable::remove(std::uint32_t slot) {
  PinEntry& entry = slots_[slot];
  std::optional<Error> busy;
  for (std::size_t i = 0; i < backends_.size(); ++i) {
    if (!entry.keys[i]) continue;
    auto status = backends_[i]->unpin(slot);
    if (isBusy(status)) {
      busy = std::move(status).error();
      continue;
    }
    entry.keys[i].reset();
    if (!status && !entry.left_inside) entry.left_inside = std::move(status).error();
  }
  if (busy) return *std::move(busy);
  const auto left_inside = std::move(entry.left_inside);
  announced_.give(entry.cost);
  entry = {};
  free_.push_back(slot);
  ++version_;
  if (left_inside) return *left_inside;
  return Ok{};
}

PinMessage PinTable::message(const PinEntry& entry) const {
  PinMessage message{.info = entry.info, .generation = entry.generation};
  for (std::size_t i = 0; i < entry.keys.size(); ++i)
    if (const auto& key = entry.keys[i])
      message.keys.push_back({std::string(backends_[i]->can().name), *key});
  return message;
}

std::vector<PinInfo> PinTable::infos() const {
  std::vector<PinInfo> out;
  for (const PinEntry& entry : slots_)
    if (entry.isShared()) out.push_back(entry.info);
  return out;
}

const core::PinMap& PinTable::map() {
  if (mapped_version_ != version_) {
    std::vector<core::PinRange> ranges;
    for (const PinEntry& entry : slots_)
      if (entry.isShared())
        ranges.push_back({.address = entry.info.address,
                          .bytes = entry.info.bytes,
                          .slot = entry.info.slot,
                          .read_only = entry.info.access == MemoryAccess::kReadOnly});
    map_ = core::PinMap(std::move(ranges));
    mapped_version_ = version_;
  }
  return map_;
}

}  // namespace viaduct::agent
