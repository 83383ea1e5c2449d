#include "core/landed_blocks.h"

#include <algorithm>

namespace viaduct::core {
namespace {

// Sorts the stretches, and merges neighbours that touch.
void merge(std::vector<Stretch>& stretches) {
  std::ranges::sort(stretches, {}, &Stretch::from);
  std::size_t last = 0;
  for (std::size_t i = 1; i < stretches.size(); ++i) {
    Stretch& before = stretches[last];
    if (before.from + before.bytes == stretches[i].from)
      before.bytes += stretches[i].bytes;
    else
      stretches[++last] = stretches[i];
  }
  if (!stretches.empty()) stretches.resize(last + 1);
}

}  // namespace

Indices landedBlocks(const Selection& selection, std::vector<Stretch> landed) {
  Indices out;
  merge(landed);
  const auto& [blocks, indices] = selection;
  const std::uint64_t taken = indices.empty() ? blocks.count() : indices.size();
  auto in = landed.begin();
  std::uint64_t from = 0;
  for (std::uint64_t number = 0; number < taken && in != landed.end(); ++number) {
    const std::uint64_t end = from + blocks[indices.empty() ? number : indices[number]].bytes;
    while (in != landed.end() && in->from + in->bytes < end) ++in;
    if (in != landed.end() && in->from <= from) out.push_back(static_cast<std::uint32_t>(number));
    from = end;
  }
  return out;
}

}  // namespace viaduct::core
