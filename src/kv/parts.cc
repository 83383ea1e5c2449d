// Layers as parts of a parcel: kvParts, kvPages and KvLayers.
#include <fmt/format.h>
#include <viaduct/kv_parts.h>

#include <algorithm>
#include <map>
#include <set>
#include <string>
#include <string_view>
#include <utility>

#include "kv/layout.h"

namespace viaduct::kv {
namespace {

constexpr auto kParts = "KV parts";
constexpr std::uint64_t kMaxBlocksOfPart = std::uint64_t{1} << 22U;  // as many as a lease may have

struct LayerPart {
  ParcelPart part = {};
  std::uint32_t layer = 0;
  std::size_t group = 0;
};

Status checkParts(const KvLayout& layout, const std::string& side) {
  VIADUCT_CHECK(checkShape(layout, kParts, side));
  for (const KvGroup& group : layout.groups)
    for (const KvCache& cache : group.caches)
      if (cache.layers.back() >= kMaxKvLayers)
        return bad(
            kParts,
            fmt::format("{}cache \"{}\" has layer {}", side, cache.name, cache.layers.back()),
            fmt::format("number layers below {}", kMaxKvLayers));
  return Ok{};
}

Status checkGroups(std::size_t given, std::size_t groups) {
  if (given == groups) return Ok{};
  return bad(kParts,
             fmt::format("blocks of {} groups are given, and the layout has {}", given, groups),
             "give the blocks of each group");
}

// The parts, sorted by layer, then by group.
std::vector<LayerPart> partsOf(const KvLayout& layout) {
  std::set<std::pair<std::uint32_t, std::size_t>> all;
  for (std::size_t group = 0; group < layout.groups.size(); ++group)
    for (const KvCache& cache : layout.groups[group].caches)
      for (const std::uint32_t layer : cache.layers) all.emplace(layer, group);
  std::vector<LayerPart> out;
  for (const auto& [layer, group] : all) {
    const bool again = !out.empty() && out.back().layer == layer;
    const std::uint32_t component = again ? out.back().part.component + kMaxKvLayers : layer;
    out.push_back({{.rank = layout.rank, .component = component}, layer, group});
  }
  return out;
}

// Calls `visit(cache, layer)` for each tensor, in the order of the group's places.
template <class Visit>
void eachTensor(const KvGroup& group, const Visit& visit) {
  for (const KvCache& cache : group.caches)
    for (const std::uint32_t layer : cache.layers)
      for (std::uint32_t tensor = 0; tensor < cache.tensors; ++tensor) visit(cache, layer);
}

// Sets the places of pages to their offsets in the parts, each of which begins at 0.
KvLayout inParts(KvLayout layout) {
  for (KvGroup& group : layout.groups) {
    std::map<std::uint32_t, std::uint64_t> row;  // the bytes of a block, by layer
    group.blocks = kMaxBlocksOfPart;
    group.places.clear();
    eachTensor(group, [&](const KvCache& cache, std::uint32_t layer) {
      group.places.push_back({.address = row[layer]});
      row[layer] += kvPageBytes(layout, group, cache);
    });
    auto place = group.places.begin();
    eachTensor(group, [&](const KvCache&, std::uint32_t layer) { (place++)->stride = row[layer]; });
  }
  return layout;
}

bool has(const KvCache& cache, std::uint32_t layer) {
  return std::binary_search(cache.layers.begin(), cache.layers.end(), layer);
}

// `layout` with one group: the caches of one layer that both ends have, with their places.
KvLayout layerOf(const KvLayout& layout, const KvLayout& other, const LayerPart& part) {
  const KvGroup& from = layout.groups[part.group];
  const KvGroup& to = other.groups[part.group];
  KvGroup out{.block_tokens = from.block_tokens, .window = from.window, .blocks = from.blocks};
  std::size_t place = 0;
  for (std::size_t i = 0; i < from.caches.size(); ++i) {
    const KvCache& cache = from.caches[i];
    if (has(cache, part.layer) && has(to.caches[i], part.layer)) {
      const auto at = std::lower_bound(cache.layers.begin(), cache.layers.end(), part.layer);
      const auto first = from.places.begin() + static_cast<std::ptrdiff_t>(place) +
                         (at - cache.layers.begin()) * static_cast<std::ptrdiff_t>(cache.tensors);
      out.caches.push_back(cache);
      out.caches.back().layers = {part.layer};
      out.places.insert(out.places.end(), first, first + cache.tensors);
    }
    place += cache.layers.size() * cache.tensors;
  }
  return {.groups = {std::move(out)},
          .order = layout.order,
          .tp = layout.tp,
          .rank = layout.rank,
          .page_align = layout.page_align};
}

// The pages of all blocks of the pool. Those that lie side by side in each block are one run.
std::vector<Run> pagesOf(const KvLayout& layout) {
  const KvGroup& group = layout.groups.front();
  std::vector<Run> out;
  auto place = group.places.begin();
  for (const KvCache& cache : group.caches)
    for (std::uint32_t tensor = 0; tensor < cache.tensors; ++tensor, ++place) {
      const std::uint64_t page = kvPageBytes(layout, group, cache);
      Run* const last = out.empty() ? nullptr : &out.back();
      if (last != nullptr && last->base + last->bytes == place->address &&
          last->stride == place->stride && last->bytes + page <= last->stride)
        last->bytes += page;
      else
        out.push_back({place->address, place->stride, page, group.blocks});
    }
  return out;
}

Result<Selection> take(const KvLayout& layer, const Indices& ids, std::size_t group) {
  const std::uint64_t blocks = layer.groups.front().blocks;
  if (ids.empty())
    return bad(kParts, fmt::format("groups[{}] has no blocks", group),
               "name the blocks of the request");
  if (const auto worst = *std::ranges::max_element(ids); worst >= blocks)
    return bad(kParts, fmt::format("groups[{}] has block {}, out of range", group, worst),
               fmt::format("the pool has {} blocks, numbered from 0", blocks));
  std::vector<Run> runs = pagesOf(layer);
  const std::size_t each = runs.size();
  Selection out;
  VIADUCT_TRY(out.blocks, Blocks::of(std::move(runs)));
  if (each == 1) {
    out.indices = ids;
    return out;
  }
  out.indices.reserve(ids.size() * each);
  for (const std::uint32_t id : ids)
    for (std::uint64_t i = 0; i < each; ++i)
      out.indices.push_back(static_cast<std::uint32_t>(i * blocks + id));
  return out;
}

// A part's plan has one group, so its errors say groups[0].
Error ofGroup(Error why, std::size_t group) {
  constexpr std::string_view kOnly = "groups[0]";
  if (const auto at = why.detail.find(kOnly); at != std::string::npos)
    why.detail.replace(at, kOnly.size(), fmt::format("groups[{}]", group));
  return why;
}

}  // namespace
}  // namespace viaduct::kv

namespace viaduct {

Result<std::vector<ParcelPart>> kvParts(const KvLayout& source) {
  VIADUCT_CHECK(kv::checkParts(source, ""));
  std::vector<ParcelPart> out;
  for (const kv::LayerPart& part : kv::partsOf(source)) out.push_back(part.part);
  return out;
}

Result<std::vector<PublishedPart>> kvPages(const KvLayout& source,
                                           std::span<const Indices> blocks) {
  VIADUCT_CHECK(kv::checkParts(source, ""));
  VIADUCT_CHECK(kv::checkPlaces(source, kv::kParts, ""));
  VIADUCT_CHECK(kv::checkGroups(blocks.size(), source.groups.size()));
  std::vector<PublishedPart> out;
  for (const kv::LayerPart& part : kv::partsOf(source)) {
    VIADUCT_TRY(auto pages,
                kv::take(kv::layerOf(source, source, part), blocks[part.group], part.group));
    out.push_back({.part = part.part, .blocks = std::move(pages)});
  }
  return out;
}

Result<KvLayers> KvLayers::plan(const KvLayout& source, const KvLayout& destination) {
  VIADUCT_CHECK(kv::checkParts(source, "source "));
  // Checks both layouts as a whole. Any places of the source will do.
  VIADUCT_TRY(const KvLayout somewhere, arrangeKv(source, KvArrangement::kApart, 0, 1));
  VIADUCT_CHECK(KvReshard::plan(somewhere, destination));
  const KvLayout in_parts = kv::inParts(source);
  KvLayers out;
  out.groups_ = source.groups.size();
  for (const kv::LayerPart& part : kv::partsOf(source)) {
    const KvLayout from = kv::layerOf(in_parts, destination, part);
    if (from.groups.front().caches.empty()) continue;
    // The layouts are right, so a part without a plan has nothing to move between these ranks.
    auto plan = KvReshard::plan(from, kv::layerOf(destination, in_parts, part));
    if (!plan) continue;
    out.parts_.push_back(part.part);
    out.plans_.push_back({part.group, *std::move(plan)});
  }
  return out;
}

Result<std::vector<PartInto>> KvLayers::into(std::span<const KvBlocks> groups) const {
  VIADUCT_CHECK(kv::checkGroups(groups.size(), groups_));
  std::vector<PartInto> out;
  out.reserve(parts_.size());
  for (std::size_t i = 0; i < parts_.size(); ++i) {
    auto taken = plans_[i].plan.select(groups.subspan(plans_[i].group, 1));
    if (!taken) return kv::ofGroup(std::move(taken).error(), plans_[i].group);
    if (taken->source.blocks.count() == 0) continue;
    out.push_back({.part = parts_[i],
                   .into = std::move(taken->destination),
                   .slice = std::move(taken->source.blocks)});
  }
  return out;
}

}  // namespace viaduct
