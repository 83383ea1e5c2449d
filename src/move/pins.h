// The table of registered memory, by slot. Only this table turns the addresses in ops and messages
// into pointers.
// Threads: find() and local() while rails run, several at once; all else while they are
// stopped.
#pragma once

#include <cstddef>
#include <cstdint>
#include <utility>
#include <vector>

namespace viaduct::move {

// Whether `bytes` at `address` lie within the `room` bytes at `start`.
inline bool inside(std::uint64_t start, std::uint64_t room, std::uint64_t address,
                   std::uint64_t bytes) {
  return address >= start && bytes <= room && address - start <= room - bytes;
}

struct PinnedRange {
  std::uint64_t address = 0, bytes = 0;  // 0 bytes: the slot is free
  std::uint32_t generation = 0;          // differs between successive pins in one slot
};

// `Pin` is a PinnedRange with further members of a backend.
template <class Pin>
class BackendPins {
 public:
  // Returns the generation of this registration, or 0 if the slot number is too large.
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
  // The pointer to these bytes; null if they are not all registered under this slot.
  std::byte* local(std::uint32_t slot, std::uint64_t address, std::uint64_t bytes) const {
    const Pin* const pin = find(slot);
    if (pin == nullptr || !inside(pin->address, pin->bytes, address, bytes)) return nullptr;
    // NOLINTNEXTLINE(performance-no-int-to-ptr): only here a registered address becomes a pointer
    return reinterpret_cast<std::byte*>(static_cast<std::uintptr_t>(address));
  }

 private:
  static constexpr std::uint32_t kMaxSlots = 1U << 24U;
  std::vector<Pin> pins_;
  std::uint32_t generations_ = 0;
};

}  // namespace viaduct::move
