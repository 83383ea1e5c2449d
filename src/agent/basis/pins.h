// The memory that is pinned at this agent: one slot for each pin, with the keys of the backends.
// Threads: under the agent's lock.
#pragma once

#include <viaduct/memory.h>
#include <viaduct/result.h>

#include <atomic>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "agent/session/messages.h"
#include "base/budget.h"
#include "base/bytes.h"
#include "core/backend.h"
#include "core/plan.h"

namespace viaduct::agent {

struct PinEntry {
  PinInfo info;
  std::uint64_t generation = 0;  // 0: the slot is free, or the pin is being removed
  // One key for each backend, in the agent's order. Empty if the backend does not accept the
  // memory.
  std::vector<std::optional<base::Bytes>> keys;
  std::size_t cost = 0;  // bytes of a peer's budget for announced pins
  core::Audience audience = core::Audience::everybody();
  // The application pinned it. Other pins are the agent's own: no plan and no list has them.
  bool isShared() const { return generation != 0 && audience.isEverybody(); }
  // Set if a backend could not end the access of every peer.
  std::optional<Error> left_inside = {};
};

// Returns the segment with the access that its memory allows, or an error if it cannot be pinned.
// Needs no lock.
Result<Segment> checkedSegment(Segment memory);

// The first address that a table gives to storage. Programs have no memory there.
inline constexpr std::uint64_t kFirstStorageAddress = std::uint64_t{1} << 62U;

class PinTable {
 public:
  explicit PinTable(std::span<const std::unique_ptr<core::Backend>> backends)
      : backends_(backends), announced_(kMaxPinsBytes) {}
  // The message that announces the pin to peers.
  PinMessage message(const PinEntry& entry) const;

  // Pins at every backend. If none accepts the memory, the error has the reason of each. Call
  // checkedSegment() before.
  Result<std::uint32_t> add(Segment memory, std::string label,
                            const core::Audience& audience = core::Audience::everybody());
  // New plans and new posts no longer find the pin. The slot stays taken until remove().
  void retire(std::uint32_t slot) {
    PinEntry& entry = slots_[slot];
    if (entry.isShared()) {
      --live_;
      live_bytes_ -= entry.info.bytes;
      ++version_;
    }
    entry.generation = 0;
  }
  // Unpins at every backend. kBusy: a peer is still inside the memory, so call again. After any
  // other answer the slot is free. An error is the first one of a backend.
  Status remove(std::uint32_t slot);

  const PinEntry& operator[](std::uint32_t slot) const { return slots_[slot]; }
  std::uint64_t generation(std::uint32_t slot) const {
    return slot < slots_.size() ? slots_[slot].generation : 0;
  }
  std::span<const PinEntry> slots() const { return slots_; }
  std::vector<PinInfo> infos() const;
  // The number of pins that new plans may use.
  std::uint64_t live() const { return live_; }
  std::uint64_t liveBytes() const { return live_bytes_; }
  const core::PinMap& map();  // for planning; rebuilt after changes
  // Changes whenever the table does. Threads: any.
  std::uint64_t version() const { return version_; }

 private:
  using Keys = std::vector<std::optional<base::Bytes>>;

  // The steps of add().
  Status checkRoom(const std::string& label) const;
  Status giveAddress(Segment& memory);
  std::optional<std::uint64_t> addressFor(const Segment& storage);
  std::vector<std::pair<std::uint64_t, std::uint64_t>> storageRanges() const;
  Result<Keys> pinAtBackends(const core::Audience& audience, std::uint32_t slot,
                             const Segment& memory);
  Result<std::uint32_t> fill(std::uint32_t slot, PinEntry entry);

  std::span<const std::unique_ptr<core::Backend>> backends_;
  base::Budget announced_;
  std::vector<PinEntry> slots_;
  std::vector<std::uint32_t> free_;
  // Slots of pins that add() refused, and that a backend has yet to unpin.
  std::vector<std::uint32_t> withdrawing_;
  std::uint64_t live_ = 0, live_bytes_ = 0;
  std::uint64_t last_generation_ = 0, mapped_version_ = 0;
  std::atomic<std::uint64_t> version_{1};
  core::PinMap map_;
  std::uint64_t next_storage_ = kFirstStorageAddress;
  bool wrapped_ = false;  // next_storage_ has reached the end of the range once
};

}  // namespace viaduct::agent
