// What is registered here, by slot: the only way from a number on the wire to memory.
// Threads: under the agent's lock.
#pragma once

#include <viaduct/memory.h>

#include <cstddef>
#include <cstdint>
#include <utility>
#include <vector>

#include "backends/tcp/wire.h"

namespace viaduct::tcp {

class TargetPins {
 public:
  // The generation of this registration; 0 when the slot is beyond all reason.
  std::uint32_t add(std::uint32_t slot, std::uint64_t address, std::uint64_t bytes,
                    MemoryAccess access = MemoryAccess::kReadWrite) {
    if (slot >= kMaxSlots) return 0;
    if (slot >= pins_.size()) pins_.resize(slot + 1);
    pins_[slot] = {.address = address,
                   .bytes = bytes,
                   .generation = ++generations_,
                   .read_only = access == MemoryAccess::kReadOnly};
    return generations_;
  }
  void drop(std::uint32_t slot) {
    if (slot < pins_.size()) pins_[slot].bytes = 0;
  }
  bool live(std::uint32_t slot) const { return slot < pins_.size() && pins_[slot].bytes > 0; }

  // Where those bytes are, or null: not registered, or not all of them.
  std::byte* local(std::uint32_t slot, std::uint64_t address, std::uint64_t bytes) const {
    if (!live(slot)) return nullptr;
    const Pinned& pin = pins_[slot];
    const bool inside =
        address >= pin.address && bytes <= pin.bytes && address - pin.address <= pin.bytes - bytes;
    // NOLINTNEXTLINE(performance-no-int-to-ptr): a registered address becomes memory here alone
    return inside ? reinterpret_cast<std::byte*>(static_cast<std::uintptr_t>(address)) : nullptr;
  }
  // The same for what a peer names, to read it.
  std::byte* readable(const FrameEntry& entry) const {
    if (!live(entry.slot) || pins_[entry.slot].generation != entry.generation) return nullptr;
    return local(entry.slot, entry.address, entry.bytes);
  }
  // The same to write it.
  std::byte* writable(const FrameEntry& entry) const {
    std::byte* const place = readable(entry);
    return place != nullptr && !pins_[entry.slot].read_only ? place : nullptr;
  }
  // The system did not let a peer's bytes in or out. True: the first time for this registration.
  bool faulted(std::uint32_t slot) {
    return live(slot) && !std::exchange(pins_[slot].faulted, true);
  }

 private:
  static constexpr std::uint32_t kMaxSlots = 1U << 24U;
  struct Pinned {
    std::uint64_t address = 0, bytes = 0;  // no bytes: not in use
    std::uint32_t generation = 0;
    bool read_only = false, faulted = false;
  };
  std::vector<Pinned> pins_;
  std::uint32_t generations_ = 0;
};

}  // namespace viaduct::tcp
