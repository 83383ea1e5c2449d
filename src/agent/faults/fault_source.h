// Decides which ops and leases of an agent VIADUCT_FAULTS hits, and counts the faults. Ops are
// numbered as rails take them, and leases as the agent lends them. The seed and the numbers alone
// decide, so the same ops get the same faults. Threads: with the agent's lock held.
#pragma once

#include <viaduct/statistics.h>

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <utility>
#include <vector>

#include "base/poller.h"
#include "core/fault_plan.h"
#include "core/op.h"

namespace viaduct::agent {

// The faults that hit one op together.
struct OpFaults {
  Duration delay{0};
  bool stop = false, corrupt = false, kill_peer = false;
  // The rail is down for this long; Duration::max(): for ever.
  std::optional<Duration> drop_rail = {};
};

class FaultSource {
 public:
  // The memory from which corrupted writes take their wrong bytes.
  static constexpr std::size_t kScratchBytes = 4096;

  // `clock` outlives the object.
  FaultSource(core::FaultPlan plan, base::Poller& clock);

  base::Poller& clock() const { return clock_; }
  // True if any rule corrupts.
  bool corrupts() const;
  // The number of ops, `most` or fewer, that come before the next op that a fault hits.
  std::size_t spared(std::size_t most) const;
  // A rail has taken these ops. Use it after spared().
  void passed(std::size_t ops) { next_ += ops; }
  // The faults of the next op, which a rail has taken.
  OpFaults take();
  // The longest duration of the next lent lease; none: no fault hits it. Counts the lease.
  std::optional<Duration> takeLease();
  // A number below `bound` that depends on the seed and on the last op that take() returned.
  std::uint64_t below(std::uint64_t bound) const;

  void count(FaultKind kind) { ++counts_[static_cast<std::size_t>(kind)]; }
  const std::array<std::uint64_t, kFaultKinds>& counts() const { return counts_; }

  // The memory that corrupted writes read. If it is not pinned, writes are not corrupted.
  std::span<std::byte> scratch() { return scratch_; }
  void scratchIsPinned(std::uint32_t slot) { scratch_slot_ = slot; }
  std::optional<std::uint32_t> scratchSlot() const { return scratch_slot_; }
  // The offset of a free byte of scratch(); give it back after use.
  std::optional<std::size_t> takeScratch();
  void giveScratch(std::size_t offset) { scratch_used_[offset] = false; }

 private:
  // Whether rule `index` hits the op with this number.
  bool hitsOp(std::size_t index, std::uint64_t number) const;
  // Whether rule `index` hits the op with this number, or the lease if the rule is about leases.
  bool hits(std::size_t index, std::uint64_t number) const;
  void apply(std::size_t index, OpFaults& to);

  const core::FaultPlan plan_;
  base::Poller& clock_;
  const Clock::time_point opened_;
  std::uint64_t next_ = 1;  // the number of the next op
  std::uint64_t next_lease_ = 1;
  std::vector<bool> is_over_;  // by rule: it hits one op after some time, and has hit it
  std::array<std::uint64_t, kFaultKinds> counts_{};
  std::array<std::byte, kScratchBytes> scratch_{};
  std::array<bool, kScratchBytes> scratch_used_{};
  std::optional<std::uint32_t> scratch_slot_;
};

}  // namespace viaduct::agent
