// Lists of blocks: a million equal pieces are one run. Threads: plain values; const calls from any.
#pragma once

#include <viaduct/result.h>

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

namespace viaduct {

// `count` pieces of `bytes` each, the first at `base`, each `stride` after the one before.
struct Run {
  std::uint64_t base = 0;
  std::uint64_t stride = 0;
  std::uint64_t bytes = 0;
  std::uint64_t count = 0;
  friend bool operator==(const Run&, const Run&) = default;
};

struct Extent {
  std::uint64_t address = 0;
  std::uint64_t bytes = 0;
  friend bool operator==(const Extent&, const Extent&) = default;
};

// Blocks of one memory space, numbered from 0 through all runs in order. Checked when made: no
// empty block, no block beyond 2^63, none that overlaps another.
class Blocks {
 public:
  Blocks() = default;
  static Result<Blocks> of(std::vector<Run> runs);
  // Equal blocks that lie `stride` apart: O(1), however many.
  static Result<Blocks> strided(std::uint64_t base, std::uint64_t stride, std::uint64_t bytes,
                                std::uint64_t count);
  static Result<Blocks> list(std::span<const Extent> extents);

  std::uint64_t count() const { return count_; }
  std::uint64_t bytes() const { return bytes_; }
  std::span<const Run> runs() const { return runs_; }
  Extent operator[](std::uint64_t index) const;  // index < count()

  // Which run a block is in, and the number of a run's first block. O(1) where all runs have
  // equally many blocks (so for one run, and for a list of extents); else a binary search.
  std::size_t runOf(std::uint64_t index) const;
  std::uint64_t firstOf(std::size_t run) const {
    return per_run_ != 0 ? run * per_run_ : first_[run];
  }

 private:
  std::vector<Run> runs_;
  std::vector<std::uint64_t> first_;  // of each run, where they are not equally long
  std::uint64_t per_run_ = 0;         // blocks in each run, where they are
  std::uint64_t count_ = 0, bytes_ = 0;
};

// Which blocks of a list a transfer takes, in which order. No indices: all of them.
struct Selection {
  Blocks blocks = {};
  std::vector<std::uint32_t> indices = {};
};

}  // namespace viaduct
