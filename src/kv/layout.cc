#include "kv/layout.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "kv/ranks.h"

namespace viaduct::kv {
namespace {

constexpr std::uint64_t kMaxPage = std::uint64_t{1} << 40U;
constexpr std::uint64_t kMaxBlocks = std::uint64_t{1} << 32U;  // Indices have 32 bits

// The place of an error: the call, and the side and field as text.
struct Spot {
  const char* operation;
  std::string field;

  Spot at(const std::string& member) const { return {operation, field + member}; }
  Error bad(const std::string& why, std::string remedy) const {
    return kv::bad(operation, fmt::format("{} {}", field, why), std::move(remedy));
  }
  Error zero(const std::string& member, const std::string& example) const {
    return at(member).bad("is 0", fmt::format("set it, for example to {}", example));
  }
};

std::uint64_t roundedUp(std::uint64_t value, std::uint64_t to) {
  return (value + to - 1) / to * to;
}

// The nearest possible numbers of ranks, not above and not below `tp`, as text.
std::string nearestRanks(std::uint32_t tp, std::uint32_t heads) {
  std::uint32_t less = tp, more = tp;
  while (!divides(less, heads)) --less;
  while (!divides(more, heads)) ++more;
  return fmt::format("{} or {}", less, more);
}

Status checkLayers(const KvCache& cache, const Spot& spot) {
  if (cache.layers.empty())
    return spot.at(".layers").bad("is empty", "number the layers that have this cache, from 0");
  const auto next = std::adjacent_find(cache.layers.begin(), cache.layers.end(),
                                       [](auto a, auto b) { return a >= b; });
  if (next == cache.layers.end()) return Ok{};
  return spot.at(".layers").bad(fmt::format("has {} before {}", *next, *(next + 1)),
                                "name each layer once, in ascending order");
}

Status checkPage(const KvLayout& layout, const KvGroup& group, const KvCache& cache,
                 const Spot& spot) {
  std::uint64_t bytes = layout.page_align;
  for (const std::uint64_t factor :
       {std::uint64_t{group.block_tokens}, std::uint64_t{cache.kv_heads},
        std::uint64_t{cache.head_size}, std::uint64_t{cache.element_bytes}})
    if (__builtin_mul_overflow(bytes, factor, &bytes) || bytes > kMaxPage)
      return spot.bad("has pages of more than 2^40 bytes",
                      "check block_tokens, kv_heads, head_size, element_bytes and page_align");
  return Ok{};
}

Status checkCache(const KvLayout& layout, const KvGroup& group, const KvCache& cache,
                  const Spot& spot) {
  VIADUCT_CHECK(checkLayers(cache, spot));
  if (cache.tensors != 1 && cache.tensors != 2)
    return spot.at(".tensors")
        .bad(fmt::format("is {}", cache.tensors), "use 2 for K and V, or 1 for a latent row");
  if (cache.kv_heads == 0) return spot.zero(".kv_heads", "8, or 1 for a latent row");
  if (cache.head_size == 0) return spot.zero(".head_size", "128");
  if (cache.element_bytes == 0) return spot.zero(".element_bytes", "2 for bf16");
  if (cache.entry_tokens == 0) return spot.zero(".entry_tokens", "1");
  if (!divides(layout.tp, cache.kv_heads))
    return spot.at(".kv_heads")
        .bad(fmt::format("is {}, which {} ranks can neither divide nor copy evenly", cache.kv_heads,
                         layout.tp),
             fmt::format("the nearest tp is {}", nearestRanks(layout.tp, cache.kv_heads)));
  if (group.block_tokens % cache.entry_tokens != 0)
    return spot.at(".entry_tokens")
        .bad(fmt::format("is {}, and the group's block_tokens of {} is no multiple of it",
                         cache.entry_tokens, group.block_tokens),
             fmt::format("the nearest block_tokens is {}",
                         roundedUp(group.block_tokens, cache.entry_tokens)));
  return checkPage(layout, group, cache, spot);
}

Status checkGroup(const KvLayout& layout, const KvGroup& group, const Spot& spot) {
  if (group.block_tokens == 0) return spot.zero(".block_tokens", "16");
  if (group.caches.empty()) return spot.at(".caches").bad("is empty", "add at least one KvCache");
  for (std::size_t i = 0; i < group.caches.size(); ++i)
    VIADUCT_CHECK(
        checkCache(layout, group, group.caches[i],
                   spot.at(fmt::format(".caches[{}] (\"{}\")", i, group.caches[i].name))));
  return Ok{};
}

// Calls `visit(cache)` for each place of the group, in order.
template <class F>
void forEachPlace(const KvGroup& group, F visit) {
  for (const KvCache& cache : group.caches)
    for (std::size_t i = 0; i < cache.layers.size() * cache.tensors; ++i) visit(cache);
}

Status checkPlaces(const KvLayout& layout, const KvGroup& group, const Spot& spot) {
  if (group.blocks == 0 || group.blocks > kMaxBlocks)
    return spot.at(".blocks").bad(fmt::format("is {}", group.blocks),
                                  "set the number of blocks in the pool, at most 2^32");
  if (group.places.size() != placesOf(group))
    return spot.at(".places").bad(
        fmt::format("has {} entries", group.places.size()),
        fmt::format("give one for each cache, layer and tensor: {}", placesOf(group)));
  std::vector<Run> runs;
  forEachPlace(group, [&](const KvCache& cache) {
    const KvPlace& place = group.places[runs.size()];
    runs.push_back({place.address, place.stride, kvPageBytes(layout, group, cache), group.blocks});
  });
  for (std::size_t i = 0; i < runs.size(); ++i)
    if (runs[i].stride < runs[i].bytes)
      return spot.at(fmt::format(".places[{}].stride", i))
          .bad(fmt::format("is {}, less than a page", runs[i].stride),
               fmt::format("the least is {}", runs[i].bytes));
  auto blocks = Blocks::of(std::move(runs));
  if (blocks) return Ok{};
  return spot.at(".places").bad("are not possible: " + blocks.error().detail,
                                "give each place its own bytes, below 2^63");
}

}  // namespace

Error bad(std::string operation, std::string detail, std::string remedy) {
  return {.code = Code::kInvalid,
          .operation = std::move(operation),
          .detail = std::move(detail),
          .remedy = std::move(remedy)};
}

std::uint64_t entryBytes(const KvCache& cache) {
  return std::uint64_t{cache.head_size} * cache.element_bytes;
}

std::uint64_t entriesOf(const KvGroup& group, const KvCache& cache) {
  return group.block_tokens / cache.entry_tokens;
}

std::size_t placesOf(const KvGroup& group) {
  std::size_t out = 0;
  for (const KvCache& cache : group.caches) out += cache.layers.size() * cache.tensors;
  return out;
}

Status checkShape(const KvLayout& layout, const char* operation, const std::string& side) {
  const Spot spot{operation, side};
  if (layout.groups.empty()) return spot.at("groups").bad("is empty", "add at least one KvGroup");
  if (layout.tp == 0) return spot.zero("tp", "1");
  if (layout.rank >= layout.tp)
    return spot.at("rank").bad(fmt::format("is {}, and tp is {}", layout.rank, layout.tp),
                               fmt::format("the ranks are 0 to {}", layout.tp - 1));
  if (layout.page_align == 0) return spot.zero("page_align", "1");
  for (std::size_t i = 0; i < layout.groups.size(); ++i)
    VIADUCT_CHECK(checkGroup(layout, layout.groups[i], spot.at(fmt::format("groups[{}]", i))));
  return Ok{};
}

Status checkPlaces(const KvLayout& layout, const char* operation, const std::string& side) {
  for (std::size_t i = 0; i < layout.groups.size(); ++i)
    VIADUCT_CHECK(
        checkPlaces(layout, layout.groups[i], {operation, fmt::format("{}groups[{}]", side, i)}));
  return Ok{};
}

namespace {

// Adds the places of a group. `together`: each layer has a pool, with the pages of a block side by
// side. Otherwise each tensor has a pool.
std::uint64_t arrangeLayers(const KvLayout& layout, KvGroup& group, bool together,
                            std::uint64_t base) {
  for (const KvCache& cache : group.caches) {
    const std::uint64_t page = kvPageBytes(layout, group, cache);
    for (std::size_t layer = 0; layer < cache.layers.size(); ++layer) {
      for (std::uint32_t tensor = 0; tensor < cache.tensors; ++tensor)
        group.places.push_back(together ? KvPlace{base + tensor * page, cache.tensors * page}
                                        : KvPlace{base + tensor * page * group.blocks, page});
      base += cache.tensors * page * group.blocks;
    }
  }
  return base;
}

void arrangeRows(KvLayout& layout, std::uint64_t base) {
  std::uint64_t widest = 0;
  for (KvGroup& group : layout.groups) {
    std::uint64_t at = 0;
    forEachPlace(group, [&](const KvCache& cache) {
      group.places.push_back({base + at, 0});
      at += kvPageBytes(layout, group, cache);
    });
    widest = std::max(widest, at);
  }
  for (KvGroup& group : layout.groups)
    for (KvPlace& place : group.places) place.stride = widest;
}

}  // namespace
}  // namespace viaduct::kv

namespace viaduct {

std::uint64_t kvPageBytes(const KvLayout& layout, const KvGroup& group, const KvCache& cache) {
  const std::uint64_t heads = kv::headsOf(cache.kv_heads, layout.tp, layout.rank).count;
  return kv::roundedUp(kv::entriesOf(group, cache) * heads * kv::entryBytes(cache),
                       layout.page_align);
}

std::uint64_t kvBlocksOf(const KvGroup& group, std::uint64_t tokens) {
  const auto blocks_for = [&](std::uint64_t count) {
    return (count + group.block_tokens - 1) / group.block_tokens;
  };
  const std::uint64_t all = blocks_for(tokens);
  return group.window == 0 ? all : std::min(all, blocks_for(group.window) + 1);
}

Status checkKvLayout(const KvLayout& layout) {
  VIADUCT_CHECK(kv::checkShape(layout, "KV layout", ""));
  return kv::checkPlaces(layout, "KV layout", "");
}

Result<KvLayout> arrangeKv(KvLayout layout, KvArrangement arrangement, std::uint64_t base,
                           std::uint64_t blocks) {
  VIADUCT_CHECK(kv::checkShape(layout, "KV layout", ""));
  for (KvGroup& group : layout.groups) {
    group.blocks = blocks;
    group.places.clear();
  }
  if (arrangement == KvArrangement::kRows)
    kv::arrangeRows(layout, base);
  else
    for (KvGroup& group : layout.groups)
      base = kv::arrangeLayers(layout, group, arrangement == KvArrangement::kTogether, base);
  VIADUCT_CHECK(kv::checkPlaces(layout, "KV layout", ""));
  return layout;
}

Extent kvExtent(const KvLayout& layout) {
  std::uint64_t low = ~std::uint64_t{0}, high = 0;
  for (const KvGroup& group : layout.groups) {
    std::size_t number = 0;
    kv::forEachPlace(group, [&](const KvCache& cache) {
      const KvPlace& place = group.places[number++];
      low = std::min(low, place.address);
      high = std::max(high, place.address + (group.blocks - 1) * place.stride +
                                kvPageBytes(layout, group, cache));
    });
  }
  return {low, high - low};
}

Result<std::vector<std::uint32_t>> kvSourceRanks(const KvLayout& source,
                                                 const KvLayout& destination) {
  KvLayout from = source;
  from.rank = 0;
  VIADUCT_CHECK(kv::checkShape(from, "KV ranks", "source "));
  VIADUCT_CHECK(kv::checkShape(destination, "KV ranks", "destination "));
  std::vector<std::uint32_t> out;
  for (; from.rank < from.tp; ++from.rank)
    for (const KvGroup& group : from.groups)
      for (const KvCache& cache : group.caches)
        if (kv::headsMoved(cache, from, destination).count != 0 &&
            (out.empty() || out.back() != from.rank))
          out.push_back(from.rank);
  return out;
}

}  // namespace viaduct
