// What is registered here, by slot: the only way from a number of a peer's to memory. Threads:
// under the agent's lock.
#pragma once

#include <cstddef>
#include <cstdint>
#include <utility>
#include <vector>

namespace viaduct::move {

// All of these bytes lie within the range.
inline bool inside(std::uint64_t start, std::uint64_t room, std::uint64_t address,
                   std::uint64_t bytes) {
  return address >= start && bytes <= room && address - start <= room - bytes;
}

struct PinnedRange {
  std::uint64_t address = 0, bytes = 0;  // no bytes: not in use
  std::uint32_t generation = 0;          // two pins that use a slot one after the other differ
};

// `Pin` is a PinnedRange with what a backend keeps beside it.
template <class Pin>
class PinTable {
 public:
  // The generation of this registration; 0: the slot is beyond all reason.
  std::uint32_t add(std::uint32_t slot, Pin pin) {
    if (slot >= kMaxSlots) return 0;
    if (slot >= pins_.size()) pins_.resize(slot + 1);
    pin.generation = ++generations_;
    pins_[slot] = std::move(pin);
    return generations_;
  }
  void drop(std::uint32_t slot) {
    if (slot < pins_.size()) pins_[slot] = {};
  }
  const Pin* find(std::uint32_t slot) const {
    return slot < pins_.size() && pins_[slot].bytes > 0 ? &pins_[slot] : nullptr;
  }
  Pin* find(std::uint32_t slot) { return const_cast<Pin*>(std::as_const(*this).find(slot)); }
  // Where those bytes are, or null: not registered, or not all of them.
  std::byte* local(std::uint32_t slot, std::uint64_t address, std::uint64_t bytes) const {
    const Pin* const pin = find(slot);
    if (pin == nullptr || !inside(pin->address, pin->bytes, address, bytes)) return nullptr;
    // NOLINTNEXTLINE(performance-no-int-to-ptr): a registered address becomes memory here alone
    return reinterpret_cast<std::byte*>(static_cast<std::uintptr_t>(address));
  }

 private:
  static constexpr std::uint32_t kMaxSlots = 1U << 24U;
  std::vector<Pin> pins_;
  std::uint32_t generations_ = 0;
};

}  // namespace viaduct::move
