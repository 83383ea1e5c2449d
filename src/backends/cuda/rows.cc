#include "backends/cuda/rows.h"

namespace viaduct::cuda {
namespace {

constexpr std::uint32_t kWidest = RowWriter::kWidest;
// Twice the bytes that a warp can have in flight. Smaller rows would cost the host more time than
// they save on the GPU.
constexpr std::uint64_t kLeastBytesOfRow = 2 * std::uint64_t{kLanes} * kInFlight * kWidest;
// A block shorter than this stays whole, because separate rows for its ends cost more than narrow
// accesses.
constexpr std::uint64_t kLeastAligned = 1024;

std::uint64_t dividedUp(std::uint64_t a, std::uint64_t b) { return (a + b - 1) / b; }

std::uint64_t upToWidest(std::uint64_t bytes) { return dividedUp(bytes, kWidest) * kWidest; }

// The bytes of the widest access that divides all numbers that were combined by | into `bits`.
std::uint32_t widestFor(std::uint64_t bits) {
  bits |= kWidest;
  const auto lowest = static_cast<std::uint32_t>(bits & (0 - bits));
  return lowest == 2 ? 1 : lowest;
}

// The bytes [at, at + bytes) of each block.
Row part(Row run, std::uint64_t at, std::uint64_t bytes) {
  run.from += at;
  run.to += at;
  run.bytes = bytes;
  return run;
}

// The blocks [block, block + count) of the run.
Row blocksOf(Row run, std::uint32_t block, std::uint32_t count) {
  run.from += block * run.from_step;
  run.to += block * run.to_step;
  run.count = count;
  return run;
}

}  // namespace

void RowWriter::begin(Row* rows, std::uint64_t bytes, std::uint32_t warps) {
  const std::uint64_t share = dividedUp(bytes, std::max<std::uint64_t>(warps, 1) * kRowsOfWarp);
  rows_ = next_ = rows;
  most_ = upToWidest(std::clamp(share, kLeastBytesOfRow, kMostBytesOfRow));
  run_ = {};
  sized_ = 0;
}

// Writes the rows of the run. The ends of long blocks get rows of their own if wider accesses can
// then move the bytes between the ends.
void RowWriter::endRun() {
  Row run = run_;
  run_.count = 0;
  if (run.count == 1) run.from_step = run.to_step = 0;
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

void RowWriter::addRows(const Row& run) {
  if (run.bytes == 0) return;
  if (run.bytes != sized_) size(run.bytes);
  if (blocks_ >= run.count) return addRow(run);
  if (blocks_ != 0) return addBlocks(run);
  for (std::uint32_t block = 0; block < run.count; ++block)
    addPieces(run.from + block * run.from_step, run.to + block * run.to_step, run.bytes);
}

// Most blocks have one size, so the results of the divisions are kept for the next block.
void RowWriter::size(std::uint64_t bytes) {
  sized_ = bytes;
  blocks_ = most_ / bytes;
  const std::uint64_t pieces = std::min<std::uint64_t>(dividedUp(bytes, most_), kMostPieces);
  piece_ = upToWidest(dividedUp(bytes, pieces));
}

// Divides the blocks of a run between rows.
void RowWriter::addBlocks(const Row& run) {
  const std::uint64_t rows = dividedUp(run.count, blocks_);
  const auto each = static_cast<std::uint32_t>(dividedUp(run.count, rows));
  for (std::uint32_t block = 0; block < run.count; block += std::min(each, run.count - block))
    addRow(blocksOf(run, block, std::min(each, run.count - block)));
}

// Divides one block between rows.
void RowWriter::addPieces(std::uint64_t from, std::uint64_t to, std::uint64_t bytes) {
  if (bytes != sized_) size(bytes);
  const std::uint32_t width = widestFor(from | to | bytes);
  const std::uint64_t piece = piece_;
  for (; bytes > piece; bytes -= piece, from += piece, to += piece) addOne(from, to, piece, width);
  addOne(from, to, bytes, width);
}

void RowWriter::addRow(const Row& row) {
  *next_ = row;
  if (row.count == 1) next_->from_step = next_->to_step = 0;
  next_->width = widestFor(row.from | row.to | row.bytes | next_->from_step | next_->to_step);
  ++next_;
}

}  // namespace viaduct::cuda
