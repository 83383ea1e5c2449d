#include "agent/peers/announced_pins.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>
#include <vector>

#include "agent/session/frame_rules.h"

namespace viaduct::agent {

Status AnnouncedPins::add(const PinMessage& message) {
  const std::uint32_t slot = message.info.slot;
  if (pins_.size() >= kMaxPins && !pins_.contains(slot))
    return brokenRule(
        fmt::format("registration number {} exceeds the limit of {}", pins_.size() + 1, kMaxPins));
  const std::size_t cost = message.cost();
  drop(slot);
  if (!bytes_.take(cost))
    return bytes_.refusal("pin", cost, "one peer's registrations", "all peers'");
  pins_[slot] = {.info = message.info,
                 .generation = ++last_generation_,
                 .owners_generation = message.generation,
                 .cost = cost};
  return Ok{};
}

void AnnouncedPins::drop(std::uint32_t slot) {
  ++version_;
  const auto found = pins_.find(slot);
  if (found == pins_.end()) return;
  bytes_.give(found->second.cost);
  if (!found->second.info.label.empty()) {
    if (withdrawn_.size() == kMostWithdrawn) withdrawn_.pop_front();
    withdrawn_.push_back(std::move(found->second.info.label));
  }
  pins_.erase(found);
}

bool AnnouncedPins::hasAnnounced(const std::function<bool(std::string_view label)>& such) const {
  return std::ranges::any_of(pins_, [&](const auto& pin) { return such(pin.second.info.label); }) ||
         std::ranges::any_of(withdrawn_, such);
}

void AnnouncedPins::clear() {
  pins_.clear();
  withdrawn_.clear();
  bytes_.give(bytes_.used());
  map_ = core::PinMap();
  mapped_version_ = ++version_;
}

std::uint64_t AnnouncedPins::generation(std::uint32_t slot) const {
  const auto found = pins_.find(slot);
  return found == pins_.end() ? 0 : found->second.generation;
}

const core::PinMap& AnnouncedPins::map() {
  if (mapped_version_ != version_) {
    std::vector<core::PinRange> ranges;
    ranges.reserve(pins_.size());
    for (const auto& [slot, pin] : pins_)
      ranges.push_back({.address = pin.info.address,
                        .bytes = pin.info.bytes,
                        .slot = slot,
                        .read_only = pin.info.access == MemoryAccess::kReadOnly,
                        .write_only = pin.info.access == MemoryAccess::kWriteOnly});
    map_ = core::PinMap(std::move(ranges));
    mapped_version_ = version_;
  }
  return map_;
}

}  // namespace viaduct::agent
