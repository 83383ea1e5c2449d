// Lists of blocks. A million equal pieces are one run. Threads: plain values; const calls from any.
#pragma once

#include <viaduct/result.h>

#include <concepts>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <ranges>
#include <span>
#include <utility>
#include <vector>

namespace viaduct {

namespace core {
struct DisjointBlocks;
}  // namespace core

// `count` blocks of `bytes` each. The first starts at `base`, the others `stride` apart.
struct Run {
  std::uint64_t base = 0;
  std::uint64_t stride = 0;  // 0: the blocks touch, as with stride = bytes
  std::uint64_t bytes = 0;
  std::uint64_t count = 0;
  friend bool operator==(const Run&, const Run&) = default;
};

struct Extent {
  std::uint64_t address = 0;
  std::uint64_t bytes = 0;
  friend bool operator==(const Extent&, const Extent&) = default;
};

// Blocks of one memory space, numbered from 0 through all runs in order. The factories refuse empty
// blocks, blocks beyond 2^63, blocks that overlap, and a stride smaller than a block. A copy shares
// the list, so its cost does not depend on the number of blocks.
class Blocks {
 public:
  Blocks() = default;
  static Result<Blocks> of(std::vector<Run> runs);
  // One run: O(1), however many blocks. Callers name the fields:
  //   Blocks::strided({.base = cache, .stride = 8192, .bytes = 4096, .count = 1024})
  static Result<Blocks> strided(const Run& run);
  static Result<Blocks> list(std::span<const Extent> extents);

  std::uint64_t count() const { return count_; }
  std::uint64_t bytes() const { return bytes_; }
  // The size of every block if all have the same size; else 0.
  std::uint64_t blockBytes() const { return block_bytes_; }
  // The number of runs that the list was made of. A list of extents has one run per block.
  std::size_t runs() const { return table_ == nullptr ? 0 : table_->list() + table_->runs.size(); }
  Run run(std::size_t number) const {
    if (table_->addresses.empty()) return table_->runs[number];
    return {table_->addressOf(number), block_bytes_, block_bytes_, 1};
  }
  // The blocks' addresses if list() made this from extents of one size; else empty.
  std::span<const std::uint64_t> addresses() const {
    const bool plain = table_ != nullptr && table_->origins.empty();
    return plain ? table_->addresses : std::span<const std::uint64_t>{};
  }
  Extent operator[](std::uint64_t index) const;  // index < count()

  // The run of a block, and the number of a run's first block. O(1) if all runs have equally many
  // blocks, as in one run or a list of extents; else a binary search.
  std::size_t runOf(std::uint64_t index) const;
  std::uint64_t firstOf(std::size_t run) const {
    return per_run_ != 0 ? run * per_run_ : table_->first[run];
  }

 private:
  friend struct core::DisjointBlocks;  // makes lists whose blocks are known not to overlap
  // Shared by all copies of one list, and never changed.
  struct Table {
    std::vector<std::uint64_t> addresses;  // of single blocks if all have one size; else empty
    std::vector<std::uint64_t> origins;    // the addresses repeat at each origin; empty: once, at 0
    std::vector<Run> runs;                 // of any other list; else empty
    std::vector<std::uint64_t> first;      // first block of each run, if runs differ in length

    std::size_t list() const { return addresses.size() * (origins.empty() ? 1 : origins.size()); }
    std::uint64_t addressOf(std::size_t number) const {
      if (origins.empty()) return addresses[number];
      return origins[number / addresses.size()] + addresses[number % addresses.size()];
    }
  };
  static std::optional<Blocks> listOfOneSize(std::span<const Extent> extents);

  std::shared_ptr<const Table> table_;
  std::uint64_t per_run_ = 0;  // blocks in each run, if all runs have equally many
  std::uint64_t count_ = 0, bytes_ = 0, block_bytes_ = 0;
};

// A container of 32-bit integers in one piece: a vector, an array, a span.
template <class R>
concept BlockNumbers = std::ranges::contiguous_range<const R> &&
                       (std::same_as<std::ranges::range_value_t<const R>, std::uint32_t> ||
                        std::same_as<std::ranges::range_value_t<const R>, std::int32_t>);

// Block numbers, in the order in which a transfer takes them. The vector also copies an engine's
// block table, which is any contiguous range of 32-bit integers. plan() refuses negative numbers.
class Indices : public std::vector<std::uint32_t> {
 public:
  using vector::vector;
  Indices(std::vector<std::uint32_t> numbers) : vector(std::move(numbers)) {}
  template <BlockNumbers R>
  Indices(const R& table) : vector(std::ranges::begin(table), std::ranges::end(table)) {}
};

// The blocks that a transfer takes. Without indices: all of them, in order. With a block table:
//   Selection{blocks, std::span(table, used)}
struct Selection {
  Blocks blocks = {};
  Indices indices = {};
};

}  // namespace viaduct
