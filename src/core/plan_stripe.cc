#include <algorithm>
#include <utility>

#include "core/plan.h"

namespace viaduct::core {
namespace {

// Cuts `op` after about `bytes`, at a multiple of `align` from its start; gives what is before the
// cut, which may be nothing or all of it.
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

// Hands out ops to parts in order, cutting where a part has its share.
class Divider {
 public:
  Divider(std::uint64_t total, std::uint64_t parts, std::uint64_t align)
      : total_(total), parts_(parts), align_(align), out_(1) {}

  void add(Op op) {
    while (op.bytes != 0) {
      const bool last = part_ + 1 == parts_;
      const std::uint64_t end = endOfShare();
      give(cutFront(op, last ? op.bytes : end - std::min(end, given_), align_));
      if (op.bytes != 0) nextPart();
    }
  }
  std::vector<std::vector<Op>> take() { return std::move(out_); }

 private:
  // The first total % parts shares are one byte longer.
  std::uint64_t endOfShare() const {
    return (part_ + 1) * (total_ / parts_) + std::min(part_ + 1, total_ % parts_);
  }
  void give(const Op& op) {
    if (op.bytes != 0) out_.back().push_back(op);
    given_ += op.bytes;
  }
  void nextPart() {
    ++part_;
    if (!out_.back().empty()) out_.emplace_back();
  }
  std::uint64_t total_, parts_, align_;
  std::vector<std::vector<Op>> out_;
  std::uint64_t given_ = 0, part_ = 0;
};

}  // namespace

std::vector<std::vector<Op>> stripe(std::vector<Op> ops, std::size_t rails, std::uint64_t min_chunk,
                                    std::uint64_t align) {
  std::uint64_t total = 0;
  for (const Op& op : ops) total += op.bytes;
  const std::uint64_t worth = total / std::max<std::uint64_t>(min_chunk, 1);
  const std::uint64_t parts = std::min<std::uint64_t>(rails, worth);
  if (parts <= 1) {
    std::vector<std::vector<Op>> whole;
    whole.push_back(std::move(ops));
    return whole;
  }
  Divider divider(total, parts, std::max<std::uint64_t>(align, 1));
  for (const Op& op : ops) divider.add(op);
  return divider.take();
}

}  // namespace viaduct::core
