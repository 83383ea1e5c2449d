#include "agent/basis/lent_ranges.h"

#include <algorithm>
#include <iterator>

#include "core/byte_ranges.h"

namespace viaduct::agent {

using core::endOf;

// The first part that ends behind `address`.
LentRanges::RangeMap::iterator LentRanges::firstBehind(std::uint64_t address) {
  const auto after = parts_.upper_bound(address);
  if (after == parts_.begin()) return after;
  const auto before = std::prev(after);
  return before->second.end > address ? before : after;
}

std::optional<std::uint64_t> LentRanges::add(std::span<const Extent> ranges, MemoryAccess access) {
  const bool written = access == MemoryAccess::kReadWrite;
  if (!written && parts_.empty() && undivided_ + ranges.size() <= kMostUndivided) {
    readers_.emplace(ranges.data(), ranges.size());
    undivided_ += ranges.size();
    return std::nullopt;
  }
  divide();
  for (const Extent& range : ranges)
    for (auto part = firstBehind(range.address); part != parts_.end() && part->first < endOf(range);
         ++part)
      if (written || part->second.written) return std::max(part->first, range.address);
  for (const Extent& range : ranges) lend(range, written);
  return std::nullopt;
}

void LentRanges::divide() {
  for (const auto& [first, count] : readers_)
    for (const Extent& range : std::span(first, count)) lend(range, false);
  readers_.clear();
  undivided_ = 0;
}

void LentRanges::cutAt(std::uint64_t address) {
  const auto part = firstBehind(address);
  if (part == parts_.end() || part->first >= address) return;
  parts_.emplace_hint(std::next(part), address, part->second);
  part->second.end = address;
}

void LentRanges::lend(const Extent& range, bool written) {
  cutAt(range.address);
  cutAt(endOf(range));
  std::uint64_t at = range.address;
  auto part = parts_.lower_bound(at);
  while (at < endOf(range)) {
    if (part != parts_.end() && part->first == at) {
      ++part->second.leases;
    } else {
      const std::uint64_t end =
          part == parts_.end() ? endOf(range) : std::min(part->first, endOf(range));
      part = parts_.emplace_hint(part, at, LentRange{.end = end, .leases = 1, .written = written});
    }
    at = part->second.end;
    ++part;
  }
}

// The borders of a lent range are borders of parts, because lend() cut there.
void LentRanges::remove(std::span<const Extent> ranges) {
  if (readers_.erase(ranges.data()) != 0) {
    undivided_ -= ranges.size();
    return;
  }
  for (const Extent& range : ranges)
    for (auto part = parts_.lower_bound(range.address);
         part != parts_.end() && part->first < endOf(range);)
      part = --part->second.leases == 0 ? parts_.erase(part) : std::next(part);
}

}  // namespace viaduct::agent
