#include "move/near_rails.h"

#include <algorithm>

namespace viaduct::move {

NearRails::NearRails(std::span<const std::string> nics, const host::Tree& tree) {
  if (nics.size() < 2) return;
  nics_ = host::nicsNamed(nics, tree);
  nodes_ = host::numaNodes(tree);
  differ_ = std::any_of(nodes_.numbers.begin(), nodes_.numbers.end(),
                        [&](int node) { return to({.node = node}) != core::kAllRails; });
}

core::RailMask NearRails::to(const host::Place& memory) const {
  const auto groups = host::byNearness(memory, nics_, nodes_);
  if (groups.size() < 2) return core::kAllRails;
  const auto& nearest = groups.front().names;
  core::RailMask out = 0;
  for (std::size_t i = 0; i < nics_.size(); ++i)
    if (std::find(nearest.begin(), nearest.end(), nics_[i].name) != nearest.end())
      out |= core::RailMask{1} << i;
  return out;
}

}  // namespace viaduct::move
