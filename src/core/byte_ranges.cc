#include "core/byte_ranges.h"

#include <algorithm>
#include <cstddef>

#include "base/sort_numbers.h"

namespace viaduct::core {
namespace {

// Sorts by address. Ranges of one size need only their addresses sorted, which is ten times
// quicker.
void sortRanges(std::vector<Extent>& ranges) {
  if (std::ranges::is_sorted(ranges, {}, &Extent::address)) return;
  const std::uint64_t bytes = ranges.front().bytes;
  if (!std::ranges::all_of(ranges, [&](const Extent& one) { return one.bytes == bytes; })) {
    std::ranges::sort(ranges, {}, &Extent::address);
    return;
  }
  std::vector<std::uint64_t> addresses;
  addresses.reserve(ranges.size());
  for (const Extent& one : ranges) addresses.push_back(one.address);
  base::sortNumbers(addresses);
  for (std::size_t i = 0; i < ranges.size(); ++i) ranges[i].address = addresses[i];
}

}  // namespace

std::optional<std::vector<Extent>> rangesOf(const Blocks& blocks) {
  std::vector<Extent> out;
  for (std::size_t i = 0; i < blocks.runs(); ++i) {
    const Run run = blocks.run(i);
    if (run.stride == run.bytes) {
      out.push_back({run.base, run.bytes * run.count});
      continue;
    }
    for (std::uint64_t block = 0; block < run.count; ++block)
      out.push_back({run.base + block * run.stride, run.bytes});
  }
  sortRanges(out);
  std::size_t last = 0;
  for (std::size_t i = 1; i < out.size(); ++i) {
    if (out[i].address < endOf(out[last])) return std::nullopt;
    if (out[i].address == endOf(out[last]))
      out[last].bytes += out[i].bytes;
    else
      out[++last] = out[i];
  }
  if (!out.empty()) out.resize(last + 1);
  return out;
}

}  // namespace viaduct::core
