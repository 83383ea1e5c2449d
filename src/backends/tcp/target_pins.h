// Our pins, which entries of the peer's frames name. Threads: find(), readable(), writable() and
// faulted() while rails run, several at once; all else while they are stopped.
#pragma once

#include <viaduct/memory.h>

#include <atomic>

#include "backends/tcp/wire.h"
#include "core/backend.h"
#include "move/pins.h"

namespace viaduct::tcp {

struct TargetPin : move::PinnedRange {
  bool read_only = false, faulted = false;
  core::Audience audience = core::Audience::everybody();
};

class TargetPins : public move::BackendPins<TargetPin> {
 public:
  std::uint32_t add(std::uint32_t slot, std::uint64_t address, std::uint64_t bytes,
                    MemoryAccess access = MemoryAccess::kReadWrite,
                    core::Audience audience = core::Audience::everybody()) {
    return BackendPins::add(
        slot,
        {{.address = address, .bytes = bytes}, access == MemoryAccess::kReadOnly, false, audience});
  }
  bool live(std::uint32_t slot) const { return find(slot) != nullptr; }

  // The pointer to the bytes that a peer with these rights wants to read, or null.
  std::byte* readable(const FrameEntry& entry, const core::PinRights& rights) const {
    const TargetPin* const pin = named(entry);
    if (pin == nullptr || !rights.to(entry.slot, pin->audience).read) return nullptr;
    return local(entry.slot, entry.address, entry.bytes);
  }
  // The pointer to the bytes that a peer with these rights wants to write, or null.
  std::byte* writable(const FrameEntry& entry, const core::PinRights& rights) const {
    const TargetPin* const pin = named(entry);
    if (pin == nullptr || pin->read_only || !rights.to(entry.slot, pin->audience).write)
      return nullptr;
    return local(entry.slot, entry.address, entry.bytes);
  }
  // Records that the kernel could not access this pin. True at the first time for this pin.
  bool faulted(std::uint32_t slot) {
    TargetPin* const pin = find(slot);
    return pin != nullptr && !std::atomic_ref(pin->faulted).exchange(true);
  }

 private:
  const TargetPin* named(const FrameEntry& entry) const {
    const TargetPin* const pin = find(entry.slot);
    return pin != nullptr && pin->generation == entry.generation ? pin : nullptr;
  }
};

}  // namespace viaduct::tcp
