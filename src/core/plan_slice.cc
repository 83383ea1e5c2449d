#include <algorithm>
#include <utility>

#include "core/plan.h"

namespace viaduct::core {
namespace {

// More slices would cost more than they even out. A list that would need more gets larger ones.
constexpr std::uint64_t kMostSlices = 2048;

// Cuts `op` after about `bytes`, at a multiple of `align` from its start. Returns the part before
// the cut, which may be empty or all of it.
Op cutFront(Op& op, std::uint64_t bytes, std::uint64_t align) {
  const std::uint64_t down = bytes / align * align;
  const bool up = bytes - down > align / 2 && op.bytes - down > align;
  const std::uint64_t at = bytes >= op.bytes ? op.bytes : down + (up ? align : 0);
  Op front = op;
  front.bytes = at;
  op.local += at;
  op.remote += at;
  op.bytes -= at;
  return front;
}

// The ends of slices, as bytes from the start. Slices come in rounds of one for each rail, of equal
// size, so that equal rails end at the same time. Each round takes a part of the remaining bytes,
// and the last round takes all of them.
class SliceEnds {
 public:
  SliceEnds(const Slicing& how, std::uint64_t total, std::uint64_t parts)
      : how_(how), total_(total), parts_(parts) {
    beginRound();
  }

  bool last() const { return last_round_ && part_ + 1 == parts_; }
  std::uint64_t end() const {
    // Spread the remainder: the first slices get one byte more.
    const std::uint64_t longer = last_round_ ? std::min(part_ + 1, (total_ - from_) % parts_) : 0;
    return from_ + (part_ + 1) * size_ + longer;
  }
  void next() {
    if (++part_ < parts_) return;
    from_ += parts_ * size_;
    part_ = 0;
    beginRound();
  }

 private:
  void beginRound() {
    const std::uint64_t left = total_ - from_;
    const std::uint64_t most = std::max({how_.most, total_ / kMostSlices, how_.least});
    size_ = std::clamp(left / (2 * parts_), how_.least, most);
    last_round_ = left < parts_ * (size_ + how_.least);
    if (last_round_) size_ = left / parts_;
  }
  const Slicing& how_;
  const std::uint64_t total_, parts_;
  std::uint64_t from_ = 0, part_ = 0, size_ = 0;  // of the current round
  bool last_round_ = false;
};

// Assigns ops to slices in order, and cuts an op that crosses the end of a slice.
class Slicer {
 public:
  Slicer(const Slicing& how, std::uint64_t total, std::uint64_t parts, std::size_t ops)
      : ends_(how, total, parts), align_(how.align) {
    out_.ops.reserve(ops);
    begin();
  }
  void add(Op op) {
    while (op.bytes != 0) {
      give(last_ ? std::exchange(op, Op{}) : cutFront(op, end_ - std::min(end_, given_), align_));
      if (op.bytes != 0) nextSlice();
    }
  }
  Sliced take() {
    closeSlice();
    return std::move(out_);
  }

 private:
  void begin() {
    last_ = ends_.last();
    end_ = ends_.end();
    slice_ = {.first = static_cast<std::uint32_t>(out_.ops.size())};
  }
  void give(const Op& op) {
    if (op.bytes == 0) return;
    out_.ops.push_back(op);
    ++slice_.ops;
    slice_.bytes += op.bytes;
    given_ += op.bytes;
  }
  void closeSlice() {
    if (slice_.ops != 0) out_.slices.push_back(slice_);
  }
  void nextSlice() {
    closeSlice();
    ends_.next();
    begin();
  }
  SliceEnds ends_;
  const std::uint64_t align_;
  Sliced out_;
  Slice slice_;
  std::uint64_t given_ = 0, end_ = 0;
  bool last_ = false;
};

}  // namespace

Sliced slice(OpList list, const Slicing& how) {
  const std::uint64_t full_chunks = list.bytes / std::max<std::uint64_t>(how.min_chunk, 1);
  const std::uint64_t parts = std::min<std::uint64_t>(how.rails, full_chunks);
  if (parts > 1) {
    Slicing exact = how;
    exact.align = std::max<std::uint64_t>(how.align, 1);
    exact.least = std::max({how.least, how.min_chunk, exact.align});
    Slicer slicer(exact, list.bytes, parts, list.ops.size());
    for (const Op& op : list.ops) slicer.add(op);
    return slicer.take();
  }
  Sliced whole{.ops = std::move(list.ops), .slices = {}};
  if (!whole.ops.empty())
    whole.slices.push_back({0, static_cast<std::uint32_t>(whole.ops.size()), list.bytes});
  return whole;
}

}  // namespace viaduct::core
