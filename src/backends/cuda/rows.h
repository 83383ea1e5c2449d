// Cuts copies into the rows of the copy kernel. Threads: one at a time.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>

#include "backends/cuda/row.h"

namespace viaduct::cuda {

// One contiguous copy between addresses that a kernel can use.
struct Copy {
  std::uint64_t from = 0, to = 0, bytes = 0;
  friend bool operator==(const Copy&, const Copy&) = default;
};

// Writes rows that move each byte of the added copies once. Neighbouring copies of one size at
// constant distances are a run, which costs few rows however long it is. Targets must not overlap
// each other or a source.
class RowWriter {
 public:
  // A row has at most about half of a warp's share, so that warps which take the rows in turn end
  // together.
  static constexpr std::uint64_t kRowsOfWarp = 2;
  static constexpr std::uint32_t kWidest = 16;  // bytes of an access
  // The most rows that one copy adds: its pieces, and rows for its two ends.
  static constexpr std::size_t kMostPieces = 512, kMostOfCopy = kMostPieces + 4;
  // Enough rows for `copies` copies, if the first copy has about the average size.
  static constexpr std::size_t roomFor(std::size_t copies, std::uint32_t warps) {
    return 3 * copies + 2 * kRowsOfWarp * std::max<std::size_t>(warps, 1) + kMostOfCopy;
  }

  // The rows go to `rows`, for a launch of `warps` warps that moves about `bytes` bytes.
  void begin(Row* rows, std::uint64_t bytes, std::uint32_t warps);
  // The caller ensures that there is room for kMostOfCopy further rows.
  void add(const Copy& copy) {
    const bool may_join = copy.bytes <= most_ / 2;
    if (may_join && copy.bytes == run_.bytes && joins(copy)) return;
    if (run_.count != 0) endRun();
    if (!may_join && (copy.from | copy.to | copy.bytes) % kWidest == 0) {
      if (copy.bytes <= most_) return addOne(copy.from, copy.to, copy.bytes, kWidest);
      return addPieces(copy.from, copy.to, copy.bytes);
    }
    run_.from = copy.from;
    run_.to = copy.to;
    run_.bytes = copy.bytes;
    run_.count = 1;
  }
  // Writes the last run, and returns the number of rows.
  std::size_t end() {
    if (run_.count != 0) endRun();
    return written();
  }
  std::size_t written() const { return static_cast<std::size_t>(next_ - rows_); }

 private:
  bool joins(const Copy& copy) {
    if (run_.count == 0) return false;
    if (run_.count == 1) {
      run_.from_step = copy.from - run_.from;
      run_.to_step = copy.to - run_.to;
    } else if (copy.from != run_.from + run_.count * run_.from_step ||
               copy.to != run_.to + run_.count * run_.to_step) {
      return false;
    }
    ++run_.count;
    return true;
  }
  // A row of one block. This writes each member on its own: a copy of a Row that was just written
  // waits for the processor's store buffer.
  void addOne(std::uint64_t from, std::uint64_t to, std::uint64_t bytes, std::uint32_t width) {
    next_->from = from;
    next_->to = to;
    next_->bytes = bytes;
    next_->from_step = next_->to_step = 0;
    next_->count = 1;
    next_->width = width;
    ++next_;
  }
  void endRun();
  void addRows(const Row& run);
  void addBlocks(const Row& run);
  void addPieces(std::uint64_t from, std::uint64_t to, std::uint64_t bytes);
  void addRow(const Row& row);
  void size(std::uint64_t bytes);

  Row* rows_ = nullptr;
  Row* next_ = nullptr;
  std::uint64_t most_ = 0;    // bytes of a row
  Row run_ = {};              // not written yet, and without a width
  std::uint64_t sized_ = 0;   // the block size for which size() computed the next two
  std::uint64_t blocks_ = 0;  // blocks of a row; 0: a block is several rows
  std::uint64_t piece_ = 0;   // bytes of a block that one row has
};

}  // namespace viaduct::cuda
