#include <algorithm>
#include <limits>
#include <tuple>

#include "core/plan.h"

namespace viaduct::core {
namespace {

std::uint64_t endOf(const PinRange& pin) { return pin.address + pin.bytes; }

bool allows(const PinRange& pin, OpKind kind) {
  return kind == OpKind::kWrite ? !pin.read_only : !pin.write_only;
}

}  // namespace

PinMap::PinMap(std::vector<PinRange> pins) : pins_(std::move(pins)) {
  std::sort(pins_.begin(), pins_.end(), [](const PinRange& a, const PinRange& b) {
    return std::tie(a.address, a.slot) < std::tie(b.address, b.slot);
  });
  furthest_.reserve(pins_.size());
  for (std::size_t i = 0; i < pins_.size(); ++i) {
    const bool first = i == 0 || endOf(pins_[i]) > endOf(pins_[furthest_.back()]);
    furthest_.push_back(first ? i : furthest_.back());
  }
}

bool PinMap::allAllow(OpKind kind) const {
  return std::all_of(pins_.begin(), pins_.end(),
                     [kind](const PinRange& pin) { return allows(pin, kind); });
}

PinMap PinMap::allowing(OpKind kind) const {
  std::vector<PinRange> pins = pins_;
  std::erase_if(pins, [kind](const PinRange& pin) { return !allows(pin, kind); });
  return PinMap(std::move(pins));
}

PinMap::PinStretch PinMap::stretch(std::uint64_t address) const {
  const auto after =
      std::upper_bound(pins_.begin(), pins_.end(), address,
                       [](std::uint64_t at, const PinRange& pin) { return at < pin.address; });
  PinStretch out{
      .low = 0,
      .high = after == pins_.end() ? std::numeric_limits<std::uint64_t>::max() : after->address,
      .pin = nullptr};
  if (after != pins_.begin()) {
    const auto last = static_cast<std::size_t>(after - pins_.begin()) - 1;
    out.low = pins_[last].address;
    out.pin = &pins_[furthest_[last]];
  }
  return out;
}

const PinRange* PinMap::cover(std::uint64_t address, std::uint64_t bytes) const {
  const PinRange* pin = stretch(address).pin;
  if (pin == nullptr || address >= endOf(*pin) || bytes > endOf(*pin) - address) return nullptr;
  return pin;
}

}  // namespace viaduct::core
