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

  // The pointer to the bytes that the peer of a session wants to read, or null.
  std::byte* readable(const FrameEntry& entry, std::uint64_t session) const {
    const TargetPin* const pin = find(entry.slot);
    const bool same =
        pin != nullptr && pin->generation == entry.generation && pin->audience.has(session);
    return same ? local(entry.slot, entry.address, entry.bytes) : nullptr;
  }
  // The pointer to the bytes that it wants to write, or null.
  std::byte* writable(const FrameEntry& entry, std::uint64_t session) const {
    std::byte* const place = readable(entry, session);
    return place != nullptr && !find(entry.slot)->read_only ? place : nullptr;
  }
  // Records that the kernel could not access this pin. True at the first time for this pin.
  bool faulted(std::uint32_t slot) {
    TargetPin* const pin = find(slot);
    return pin != nullptr && !std::atomic_ref(pin->faulted).exchange(true);
  }
};

}  // namespace viaduct::tcp
