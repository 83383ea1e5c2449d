// One plan for each layer: KvLayers.
#include <fmt/format.h>
#include <viaduct/kv_stream.h>

#include <algorithm>
#include <iterator>
#include <set>
#include <utility>

#include "kv/layout.h"

namespace viaduct::kv {
namespace {

bool has(const KvCache& cache, std::uint32_t layer) {
  return std::binary_search(cache.layers.begin(), cache.layers.end(), layer);
}

// Appends the caches of `from` that both ends have for this layer, with their places for it.
void appendOfLayer(const KvGroup& from, const KvGroup& other, std::uint32_t layer, KvGroup& out) {
  std::size_t place = 0;
  for (std::size_t i = 0; i < from.caches.size(); ++i) {
    const KvCache& cache = from.caches[i];
    if (has(cache, layer) && has(other.caches[i], layer)) {
      const auto at = std::lower_bound(cache.layers.begin(), cache.layers.end(), layer);
      const auto first = from.places.begin() + static_cast<std::ptrdiff_t>(place) +
                         (at - cache.layers.begin()) * static_cast<std::ptrdiff_t>(cache.tensors);
      out.caches.push_back(cache);
      out.caches.back().layers = {layer};
      out.places.insert(out.places.end(), first, first + cache.tensors);
    }
    place += cache.layers.size() * cache.tensors;
  }
}

// The part of both layouts that belongs to one layer, and the groups that are left.
struct LayerOf {
  KvLayout source, destination;
  std::vector<std::size_t> groups = {};
};

LayerOf layerOf(const KvLayout& source, const KvLayout& destination, std::uint32_t layer) {
  LayerOf out{.source = source, .destination = destination};
  out.source.groups.clear();
  out.destination.groups.clear();
  const auto empty = [](KvGroup group) {
    group.caches.clear();
    group.places.clear();
    return group;
  };
  for (std::size_t i = 0; i < source.groups.size(); ++i) {
    KvGroup from = empty(source.groups[i]), to = empty(destination.groups[i]);
    appendOfLayer(source.groups[i], destination.groups[i], layer, from);
    appendOfLayer(destination.groups[i], source.groups[i], layer, to);
    if (from.caches.empty()) continue;
    out.source.groups.push_back(std::move(from));
    out.destination.groups.push_back(std::move(to));
    out.groups.push_back(i);
  }
  return out;
}

std::set<std::uint32_t> layersOf(const KvLayout& layout) {
  std::set<std::uint32_t> out;
  for (const KvGroup& group : layout.groups)
    for (const KvCache& cache : group.caches) out.insert(cache.layers.begin(), cache.layers.end());
  return out;
}

}  // namespace
}  // namespace viaduct::kv

namespace viaduct {

Result<KvLayers> KvLayers::plan(const KvLayout& source, const KvLayout& destination) {
  VIADUCT_CHECK(KvReshard::plan(source, destination));  // checks both layouts as a whole
  KvLayers out;
  out.groups_ = source.groups.size();
  for (const std::uint32_t layer : kv::layersOf(source)) {
    kv::LayerOf part = kv::layerOf(source, destination, layer);
    if (part.groups.empty()) continue;
    // The layouts are right, so a layer without a plan has nothing to move between these ranks.
    auto plan = KvReshard::plan(part.source, part.destination);
    if (!plan) continue;
    out.layers_.push_back(layer);
    out.plans_.push_back({std::move(part.groups), *std::move(plan)});
  }
  return out;
}

Result<std::vector<KvSelections>> KvLayers::select(std::span<const KvBlocks> groups) const {
  if (groups.size() != groups_)
    return kv::bad(
        "KV select",
        fmt::format("blocks of {} groups are given, and the plan has {}", groups.size(), groups_),
        "give a KvBlocks for each group, without blocks if nothing is moved");
  std::vector<KvSelections> out;
  out.reserve(plans_.size());
  std::vector<KvBlocks> of_layer;
  for (const One& one : plans_) {
    of_layer.clear();
    for (const std::size_t group : one.groups) of_layer.push_back(groups[group]);
    VIADUCT_TRY(auto selections, one.plan.select(of_layer));
    out.push_back(std::move(selections));
  }
  return out;
}

}  // namespace viaduct
