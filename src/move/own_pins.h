// What is registered here, by slot. Threads: under the agent's lock.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <vector>

#include "core/backend.h"
#include "move/endpoint.h"

namespace viaduct::move {

class OwnPins {
 public:
  struct OwnPin {
    std::uint64_t address = 0, bytes = 0;  // no bytes: not in use
    std::uint32_t generation = 0;
    std::vector<std::unique_ptr<Registration>> registered = {};  // one per rail
    core::RailMask near = core::kAllRails;

    bool usable() const {
      return std::all_of(registered.begin(), registered.end(),
                         [](const auto& one) { return one->usable(); });
    }
  };
  static constexpr std::uint32_t kMaxSlots = 1U << 24U;

  // The generation of this registration; 0: the slot is beyond all reason.
  std::uint32_t add(std::uint32_t slot, std::uint64_t address, std::uint64_t bytes,
                    std::vector<std::unique_ptr<Registration>> registered,
                    core::RailMask near = core::kAllRails) {
    if (slot >= kMaxSlots) return 0;
    if (slot >= pins_.size()) pins_.resize(slot + 1);
    pins_[slot] = {address, bytes, ++generations_, std::move(registered), near};
    return generations_;
  }
  void drop(std::uint32_t slot) {
    if (slot < pins_.size()) pins_[slot] = {};
  }
  const OwnPin* find(std::uint32_t slot) const {
    return slot < pins_.size() && pins_[slot].bytes > 0 ? &pins_[slot] : nullptr;
  }
  // Those bytes, as the rail moves them; nowhere: not registered, or not all of them.
  Piece local(std::uint32_t slot, std::uint64_t address, std::uint64_t bytes,
              std::size_t rail) const {
    const OwnPin* const pin = find(slot);
    if (pin == nullptr || !inside(pin->address, pin->bytes, address, bytes)) return {};
    // NOLINTNEXTLINE(performance-no-int-to-ptr): a registered address becomes memory here alone
    auto* const here = reinterpret_cast<std::byte*>(static_cast<std::uintptr_t>(address));
    return {.here = here, .bytes = bytes, .local = pin->registered[rail].get()};
  }
  static bool inside(std::uint64_t start, std::uint64_t room, std::uint64_t address,
                     std::uint64_t bytes) {
    return address >= start && bytes <= room && address - start <= room - bytes;
  }

 private:
  std::vector<OwnPin> pins_;
  std::uint32_t generations_ = 0;
};

}  // namespace viaduct::move
