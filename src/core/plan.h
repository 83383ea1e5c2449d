// From blocks and indices to ops: pure code over values. Threads: plain values and functions.
#pragma once

#include <viaduct/blocks.h>
#include <viaduct/result.h>
#include <viaduct/transfer.h>

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "core/op.h"

namespace viaduct::core {

// A pinned range of one memory space, as planning sees it.
struct PinRange {
  std::uint64_t address = 0;
  std::uint64_t bytes = 0;
  std::uint32_t slot = 0;
};

// Sorted by address; may overlap (the same memory pinned twice): of those that cover a block the
// one that reaches furthest serves, so that neighbours merge as far as any pin allows.
class PinMap {
 public:
  explicit PinMap(std::vector<PinRange> pins = {});
  // The pin that covers [address, address + bytes), or nullptr.
  const PinRange* cover(std::uint64_t address, std::uint64_t bytes) const;
  std::span<const PinRange> ranges() const { return pins_; }

  // What serves all addresses in [low, high): the pin, or nullptr when none starts before.
  struct Stretch {
    std::uint64_t low = 0, high = 0;
    const PinRange* pin = nullptr;
  };
  Stretch stretch(std::uint64_t address) const;

 private:
  std::vector<PinRange> pins_;
  std::vector<std::size_t> furthest_;  // of pins_[0..i], the one that ends last
};

// Pairs the bytes of both selections in order, merges neighbours that touch on both sides, and
// checks: equal totals, indices in range, every block in one pin, no block written twice. An error
// names the block. Tens of nanoseconds an index; one step a run where whole dense runs are taken.
Result<std::vector<Op>> coalesce(OpKind kind, const Selection& local, const Selection& remote,
                                 const PinMap& local_pins, const PinMap& remote_pins);

// Divides ops among `rails` rails: no more rails than bytes / min_chunk, each gets contiguous ops
// and about the same number of bytes; an op is split only at a multiple of `align` from its start.
std::vector<std::vector<Op>> stripe(std::vector<Op> ops, std::size_t rails, std::uint64_t min_chunk,
                                    std::uint64_t align = 4096);

// What a caller demands of the path: "rdma", "same-host", "not-tcp", "backend:NAME", with commas.
struct Requirement {
  bool rdma = false, same_host = false, not_tcp = false;
  std::string backend = {};
  friend bool operator==(const Requirement&, const Requirement&) = default;
};
Result<Requirement> parseRequirement(std::string_view text);

}  // namespace viaduct::core
