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
  bool read_only = false;
};

// Sorted by address; may overlap (the same memory pinned twice): of those that cover a block the
// one that reaches furthest serves, so that neighbours merge as far as any pin allows.
class PinMap {
 public:
  explicit PinMap(std::vector<PinRange> pins = {});
  // The pin that covers [address, address + bytes), or nullptr.
  const PinRange* cover(std::uint64_t address, std::uint64_t bytes) const;
  std::span<const PinRange> ranges() const { return pins_; }
  bool allWritable() const;
  PinMap writable() const;  // without the read-only pins

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

// Neighbouring ops whose pins are the same on either side.
struct PinSpan {
  std::uint32_t local_pin = 0, remote_pin = 0;
  std::size_t ops = 0;
};
// Ops in order, with their totals: nobody who plans has to walk the ops again.
struct OpList {
  std::vector<Op> ops;
  std::vector<PinSpan> spans;  // in order; together all of the ops
  std::uint64_t bytes = 0;
};

// Pairs the bytes of both selections in order, merges neighbours that touch on both sides, and
// checks: equal totals, indices in range, every block in one pin, the written ones in writable pins
// and none of them twice. An error names the block. A few nanoseconds an index; one step a run
// where whole dense runs are taken.
Result<OpList> coalesce(OpKind kind, const Selection& local, const Selection& remote,
                        const PinMap& local_pins, const PinMap& remote_pins);

// A contiguous range of a list of ops: what a rail gets at a time.
struct Slice {
  std::uint32_t first = 0, ops = 0;
  std::uint64_t bytes = 0;
  friend bool operator==(const Slice&, const Slice&) = default;
};
struct Sliced {
  std::vector<Op> ops;
  std::vector<Slice> slices;  // in order; together all of the ops
};
// For how many rails, and how finely.
struct Slicing {
  std::size_t rails = 1;
  std::uint64_t min_chunk = 16 << 10;  // what is less is not worth a rail of its own
  std::uint64_t align = 4096;          // an op is cut only at a multiple of it from its start
  std::uint64_t least = 64 << 10;      // of slices that are handed out one after another
  std::uint64_t most = 8 << 20;
};
// Divides ops into slices. A short list becomes one slice for each rail that is worth it, all of
// about the same size, so never more than bytes / min_chunk. A long one becomes more than there are
// rails, for the rails to take as they get free, and smaller and smaller ones, so that they all end
// at about the same time whatever their speed.
Sliced slice(OpList list, const Slicing& how);

// What a caller demands of the path: "rdma", "same-host", "not-tcp", "backend:NAME", with commas.
struct Requirement {
  bool rdma = false, same_host = false, not_tcp = false;
  std::string backend = {};
  friend bool operator==(const Requirement&, const Requirement&) = default;
};
Result<Requirement> parseRequirement(std::string_view text);

}  // namespace viaduct::core
