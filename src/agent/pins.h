// What is registered with an agent: slots, and what each backend says of each. Threads: under the
// agent's lock.
#pragma once

#include <viaduct/memory.h>
#include <viaduct/result.h>

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
  std::uint64_t generation = 0;  // 0: the slot is free, or will be
  // By backend, in the agent's order; nothing where the backend does not take such memory.
  std::vector<std::optional<base::Bytes>> keys;
  std::size_t cost = 0;                   // to a peer
  std::optional<Error> left_inside = {};  // a backend could not withdraw it from everybody
};

// The segment with the access that its memory allows. Refuses one that cannot be pinned. No lock
// needed.
Result<Segment> checkedSegment(Segment memory);

class PinTable {
 public:
  explicit PinTable(std::span<const std::unique_ptr<core::Backend>> backends)
      : backends_(backends), announced_(kMaxPinsBytes) {}
  // As peers hear of it.
  PinMessage message(const PinEntry& entry) const;

  // Registers with every backend; fails when none takes it, with what each said. The segment has
  // been checked.
  Result<std::uint32_t> add(const Segment& memory, std::string label);
  // It is there for no new plan and no new post; its slot stays taken until remove().
  void retire(std::uint32_t slot) {
    PinEntry& entry = slots_[slot];
    if (std::exchange(entry.generation, 0) != 0) {
      --live_;
      live_bytes_ -= entry.info.bytes;
    }
    ++version_;
  }
  // Withdraws from every backend. kBusy: one has a peer inside; call again. Any other answer is the
  // last, with the first failure as the error, and the slot is free.
  Status remove(std::uint32_t slot);

  const PinEntry& operator[](std::uint32_t slot) const { return slots_[slot]; }
  std::uint64_t generation(std::uint32_t slot) const {
    return slot < slots_.size() ? slots_[slot].generation : 0;
  }
  std::span<const PinEntry> slots() const { return slots_; }
  std::vector<PinInfo> infos() const;
  // Those that new plans may use.
  std::uint64_t live() const { return live_; }
  std::uint64_t liveBytes() const { return live_bytes_; }
  const core::PinMap& map();                          // for planning; rebuilt after changes
  std::uint64_t version() const { return version_; }  // changes whenever the table does

 private:
  std::span<const std::unique_ptr<core::Backend>> backends_;
  base::Budget announced_;
  std::vector<PinEntry> slots_;
  std::vector<std::uint32_t> free_;
  std::vector<std::uint32_t> withdrawing_;  // refused by add() while a peer was inside other memory
  std::uint64_t live_ = 0, live_bytes_ = 0;
  std::uint64_t last_generation_ = 0, version_ = 1, mapped_version_ = 0;
  core::PinMap map_;
};

}  // namespace viaduct::agent
