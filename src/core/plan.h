// From blocks and indices to ops: pure code over values.
#pragma once

#include <viaduct/blocks.h>
#include <viaduct/result.h>
#include <viaduct/transfer.h>

#include <cstdint>
#include <functional>
#include <span>
#include <string>
#include <vector>

#include "core/op.h"

namespace viaduct::core {

// A pinned range of one memory space, as planning sees it.
struct PinRange {
  std::uint64_t address = 0;
  std::uint64_t bytes = 0;
  std::uint32_t slot = 0;
};

// Sorted by address; may overlap (the same memory pinned twice): any that covers the block serves.
class PinMap {
 public:
  explicit PinMap(std::vector<PinRange> pins = {});
  // The slot of a pin that covers [address, address + bytes), or nullptr.
  const PinRange* cover(std::uint64_t address, std::uint64_t bytes) const;
  std::span<const PinRange> ranges() const { return pins_; }

 private:
  std::vector<PinRange> pins_;
};

// Pairs the bytes of both selections in order, merges neighbours that touch on both sides, and
// checks: equal totals, indices in range, every block in a pin, no block written twice. An error
// names the block. One pass; tens of nanoseconds an index.
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
};
Result<Requirement> parseRequirement(std::string_view text);

}  // namespace viaduct::core
