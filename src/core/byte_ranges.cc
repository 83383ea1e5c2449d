#include "core/byte_ranges.h"

#include <algorithm>
#include <cstddef>

namespace viaduct::core {

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
  std::ranges::sort(out, {}, &Extent::address);
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
