// Turns blocks and indices into ops, without side effects. Threads: plain values and functions.
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
  bool read_only = false, write_only = false;
};

// Pins sorted by address. They may overlap, if memory is pinned twice. The pin that reaches
// furthest serves a block, so that neighbours merge as far as any pin allows.
class PinMap {
 public:
  explicit PinMap(std::vector<PinRange> pins = {});
  // The pin that covers [address, address + bytes), or nullptr.
  const PinRange* cover(std::uint64_t address, std::uint64_t bytes) const;
  std::span<const PinRange> ranges() const { return pins_; }
  // allAllow(): whether all pins may be read, or written. allowing(): the map of the pins that may.
  bool allAllow(OpKind kind) const;
  PinMap allowing(OpKind kind) const;

  // The pin that serves all addresses in [low, high); nullptr if no pin starts at or before them.
  struct PinStretch {
    std::uint64_t low = 0, high = 0;
    const PinRange* pin = nullptr;
  };
  PinStretch stretch(std::uint64_t address) const;

 private:
  std::vector<PinRange> pins_;
  std::vector<std::size_t> furthest_;  // of pins_[0..i], the index of the pin that ends last
};

// The number of consecutive ops that have the same two pins.
struct PinSpan {
  std::uint32_t local_pin = 0, remote_pin = 0;
  std::size_t ops = 0;
};
// Ops in order, with their totals, so that nobody has to walk the ops again.
struct OpList {
  std::vector<Op> ops;
  std::vector<PinSpan> spans;  // in order; together they contain all ops
  std::uint64_t bytes = 0;
  std::uint64_t whole = 0;                // as in Work
  Priority priority = Priority::kNormal;  // for a hop of a staged transfer
};

// Pairs the bytes of both selections in order, and merges neighbours that touch on both sides.
// Checks that totals are equal, indices in range, every block in one pin, written pins writable,
// and no written block named twice. An error names the block. Costs a few nanoseconds per index, or
// one step for each run of touching blocks that is taken whole.
Result<OpList> coalesce(OpKind kind, const Selection& local, const Selection& remote,
                        const PinMap& local_pins, const PinMap& remote_pins);

// A contiguous range of an op list. A rail gets one slice at a time.
struct Slice {
  std::uint32_t first = 0, ops = 0;
  std::uint64_t bytes = 0;
  friend bool operator==(const Slice&, const Slice&) = default;
};
struct Sliced {
  std::vector<Op> ops;
  std::vector<Slice> slices;  // in order; together they contain all ops
};
// The number of rails to slice for, and the sizes.
struct Slicing {
  std::size_t rails = 1;
  std::uint64_t min_chunk = 16 << 10;  // least bytes that pay for one more rail
  std::uint64_t align = 4096;          // an op is cut only at a multiple of it from its start
  std::uint64_t least = 64 << 10;      // least bytes of slices that rails take one after another
  std::uint64_t most = 8 << 20;
};
// Divides ops into slices. A short list becomes one slice for each rail that pays off, all of about
// the same size: at most bytes / min_chunk slices. A long list becomes more slices than there are
// rails, and each free rail takes the next. They get smaller and smaller, so that rails of any
// speed end at about the same time.
Sliced slice(OpList list, const Slicing& how);

// A caller's demands on the path: "rdma", "same-host", "not-tcp", "no-staging", "gpu-direct",
// "packed", "encrypted", "backend:NAME", with commas.
struct Requirement {
  bool rdma = false, same_host = false, not_tcp = false;
  bool encrypted = false;   // nobody but the two agents can read the bytes
  bool no_staging = false;  // no memory is staged
  bool gpu_direct = false;  // no memory of a GPU is staged
  bool packed = false;      // small blocks are gathered into chunks, and scattered from them
  std::string backend = {};
  friend bool operator==(const Requirement&, const Requirement&) = default;
};
Result<Requirement> parseRequirement(std::string_view text);

}  // namespace viaduct::core
