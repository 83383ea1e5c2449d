#include "backends/cuda/rows.h"

#include <algorithm>
#include <cstddef>

namespace viaduct::cuda {
namespace {

constexpr std::uint32_t kWidest = 16;
// Warps whose rows are of unequal size differ at the end by about one row.
constexpr std::uint64_t kRowsOfWarp = 4;
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

// The longest run at the front of the copies, as one row without a width.
Row frontRun(std::span<const Copy> copies) {
  const Copy& first = copies.front();
  Row run{.from = first.from, .to = first.to, .bytes = first.bytes, .count = 1};
  if (copies.size() == 1 || copies[1].bytes != first.bytes) return run;
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
  RowCutter(std::uint64_t most, std::vector<Row>& rows) : most_(most), rows_(rows) {}

  // Separates the ends of long blocks, if wider accesses then move the bytes between them.
  void add(const Row& run) {
    const std::uint32_t width = widestFor(run.from_step | run.to_step | (run.from - run.to));
    const std::uint64_t below_width = width - 1;
    const std::uint64_t head = (0 - run.from) & below_width;
    if (run.bytes < kLeastAligned) return addRows(run);
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
    if (run.bytes <= most_) return addBlocks(run);
    for (std::uint32_t block = 0; block < run.count; ++block) addPieces(from(run, block, 1));
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
    const std::uint64_t rows = dividedUp(run.count, most_ / run.bytes);
    const auto each = static_cast<std::uint32_t>(dividedUp(run.count, rows));
    for (std::uint32_t block = 0; block < run.count; block += std::min(each, run.count - block))
      addRow(from(run, block, std::min(each, run.count - block)));
  }

  // Divides one block between rows.
  void addPieces(const Row& block) {
    const std::uint64_t each = upToWidest(dividedUp(block.bytes, dividedUp(block.bytes, most_)));
    for (std::uint64_t at = 0; at < block.bytes; at += std::min(each, block.bytes - at))
      addRow(part(block, at, std::min(each, block.bytes - at)));
  }

  void addRow(Row row) {
    if (row.count == 1) row.from_step = row.to_step = 0;
    row.width = widestFor(row.from | row.to | row.bytes | row.from_step | row.to_step);
    rows_.push_back(row);
  }

  std::uint64_t most_;
  std::vector<Row>& rows_;
};

}  // namespace

void cutRows(std::span<const Copy> copies, std::uint32_t warps, std::vector<Row>& rows) {
  rows.clear();
  RowCutter cutter(mostBytesOfRow(copies, warps), rows);
  while (!copies.empty()) {
    const Row run = frontRun(copies);
    cutter.add(run);
    copies = copies.subspan(run.count);
  }
}

}  // namespace viaduct::cuda
