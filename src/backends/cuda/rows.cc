#include "backends/cuda/rows.h"

#include <algorithm>
#include <cstddef>

namespace viaduct::cuda {
namespace {

constexpr std::uint32_t kWidest = 16;
// The bytes of a warp that has started all loads that it can. Less would leave loads unused.
constexpr std::uint64_t kLeastBytesOfRow = std::uint64_t{kLanes} * kInFlight * kWidest;
// A shorter block stays whole, because separate rows for its ends cost more than narrow accesses.
constexpr std::uint64_t kLeastAligned = 1024;

std::uint64_t dividedUp(std::uint64_t a, std::uint64_t b) { return (a + b - 1) / b; }

std::uint64_t upToWidest(std::uint64_t bytes) { return dividedUp(bytes, kWidest) * kWidest; }

// The widest access that divides all numbers whose bits are in `bits`.
std::uint32_t widestFor(std::uint64_t bits) {
  bits |= kWidest;
  const auto lowest = static_cast<std::uint32_t>(bits & (0 - bits));
  return lowest == 2 ? 1 : lowest;
}

std::uint64_t mostBytesOfRow(std::span<const Copy> copies, std::uint32_t warps) {
  std::uint64_t all = 0;
  for (const Copy& copy : copies) all += copy.bytes;
  const std::uint64_t share = dividedUp(all, std::max<std::uint64_t>(warps, 1) * kRowsOfWarp);
  return upToWidest(std::clamp(share, kLeastBytesOfRow, kMostBytesOfRow));
}

// The run at the front of the copies, as one row without a width. Blocks of which a row of `most`
// bytes has one only are no run.
Row frontRun(std::span<const Copy> copies, std::uint64_t most) {
  const Copy& first = copies.front();
  Row run{.from = first.from, .to = first.to, .bytes = first.bytes, .count = 1};
  if (first.bytes > most / 2 || copies.size() == 1 || copies[1].bytes != first.bytes) return run;
  run.from_step = copies[1].from - first.from;
  run.to_step = copies[1].to - first.to;
  Copy next = copies[1];
  while (run.count < copies.size() && copies[run.count] == next) {
    ++run.count;
    next.from += run.from_step;
    next.to += run.to_step;
  }
  return run;
}

class RowCutter {
 public:
  RowCutter(std::uint64_t most, Row* rows) : most_(most), next_(rows) {}
  const Row* end() const { return next_; }

  // Separates the ends of long blocks, if wider accesses then move the bytes between them.
  void add(const Row& run) {
    const std::uint32_t width = widestFor(run.from_step | run.to_step | (run.from - run.to));
    const std::uint64_t below_width = width - 1;
    const bool whole = ((run.from | run.bytes) & below_width) == 0;
    if (whole || run.bytes < kLeastAligned) return addRows(run);
    const std::uint64_t head = (0 - run.from) & below_width;
    const std::uint64_t body = (run.bytes - head) & ~below_width;
    addRows(part(run, 0, head));
    addRows(part(run, head, body));
    addRows(part(run, head + body, run.bytes - head - body));
  }

 private:
  // The bytes [at, at + bytes) of each block.
  static Row part(Row run, std::uint64_t at, std::uint64_t bytes) {
    run.from += at;
    run.to += at;
    run.bytes = bytes;
    return run;
  }

  void addRows(const Row& run) {
    if (run.bytes == 0) return;
    if (run.bytes != sized_) size(run.bytes);
    if (blocks_ >= run.count) return addRow(run);
    if (blocks_ != 0) return addBlocks(run);
    for (std::uint32_t block = 0; block < run.count; ++block) addPieces(from(run, block, 1));
  }
  // Blocks are mostly of one size, so what needs a division is kept.
  void size(std::uint64_t bytes) {
    sized_ = bytes;
    blocks_ = most_ / bytes;
    piece_ = upToWidest(dividedUp(bytes, dividedUp(bytes, most_)));
  }

  // The blocks [block, block + count) of the run.
  static Row from(Row run, std::uint32_t block, std::uint32_t count) {
    run.from += block * run.from_step;
    run.to += block * run.to_step;
    run.count = count;
    return run;
  }

  // Divides the blocks of a run between rows.
  void addBlocks(const Row& run) {
    const std::uint64_t rows = dividedUp(run.count, blocks_);
    const auto each = static_cast<std::uint32_t>(dividedUp(run.count, rows));
    for (std::uint32_t block = 0; block < run.count; block += std::min(each, run.count - block))
      addRow(from(run, block, std::min(each, run.count - block)));
  }

  // Divides one block between rows.
  void addPieces(const Row& block) {
    for (std::uint64_t at = 0; at < block.bytes; at += std::min(piece_, block.bytes - at))
      addRow(part(block, at, std::min(piece_, block.bytes - at)));
  }

  void addRow(const Row& row) {
    *next_ = row;
    if (row.count == 1) next_->from_step = next_->to_step = 0;
    next_->width = widestFor(row.from | row.to | row.bytes | next_->from_step | next_->to_step);
    ++next_;
  }

  const std::uint64_t most_;
  Row* next_;
  std::uint64_t sized_ = 0;   // the size of block that the next two are for
  std::uint64_t blocks_ = 0;  // of a row; 0: a block is several rows
  std::uint64_t piece_ = 0;   // of a block, for a row
};

}  // namespace

std::size_t cutRows(std::span<const Copy> copies, std::uint32_t warps, Row* rows) {
  const std::uint64_t most = mostBytesOfRow(copies, warps);
  RowCutter cutter(most, rows);
  while (!copies.empty()) {
    const Row run = frontRun(copies, most);
    cutter.add(run);
    copies = copies.subspan(run.count);
  }
  return static_cast<std::size_t>(cutter.end() - rows);
}

}  // namespace viaduct::cuda
