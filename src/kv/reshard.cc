#include <fmt/format.h>
#include <viaduct/kv.h>

#include <algorithm>
#include <numeric>
#include <string>
#include <utility>

#include "kv/layout.h"
#include "kv/ranks.h"
#include "kv/reshard_table.h"

namespace viaduct::kv {
namespace {

constexpr auto kPlanning = "KV reshard";

// One cache of one end.
struct End {
  const KvLayout& layout;
  const KvGroup& group;
  const KvCache& cache;
  std::size_t first_place = 0;  // the index of this cache's first place

  std::uint64_t bytes() const { return kvPageBytes(layout, group, cache); }
  Heads heads() const { return headsOf(cache.kv_heads, layout.tp, layout.rank); }
  bool byHead() const { return layout.order == KvOrder::kHnd; }
  // The distance from an entry to the entry of the next head, or of the next tokens.
  std::uint64_t headStride() const {
    return entryBytes(cache) * (byHead() ? entriesOf(group, cache) : 1);
  }
  std::uint64_t tokenStride() const { return entryBytes(cache) * (byHead() ? 1 : heads().count); }
};

// A cut, and the number of moved heads, each of which has pieces of its own in a page.
struct HeadCut {
  Cut cut = {};
  std::uint32_t heads = 1;
};

// Makes pieces as large as both ends allow. `entries`: the entries of one head in a chunk of
// tokens, into which the pages of both ends divide. `heads`: the number of moved heads.
HeadCut cutOf(const End& from, const End& to, std::uint64_t entries, std::uint32_t heads) {
  std::uint64_t bytes = entryBytes(from.cache), tokens = entries;
  const auto join_heads = [&] {
    const bool touch = from.headStride() == bytes && to.headStride() == bytes;
    if (heads > 1 && touch) bytes *= std::exchange(heads, 1);
  };
  join_heads();
  if (from.tokenStride() == bytes && to.tokenStride() == bytes) bytes *= std::exchange(tokens, 1);
  join_heads();
  const auto page_of = [&](const End& end) {
    return Page{.block_stride = 0,
                .step = end.tokenStride() * (entries / tokens),
                .pieces = entriesOf(end.group, end.cache) / (entries / tokens)};
  };
  HeadCut out{{page_of(from), page_of(to), bytes}, heads};
  // A whole page is moved with its padding, so that neighbouring pages are one piece.
  const bool whole = out.cut.source.pieces == 1 && out.cut.destination.pieces == 1 && heads == 1 &&
                     from.heads() == to.heads();
  if (whole && from.bytes() == to.bytes()) out.cut.bytes = from.bytes();
  return out;
}

// A list of cuts with their origins, in which neighbours at both ends are one.
class PartList {
 public:
  void add(const Cut& cut, const Origin& origin) {
    if (joins(cut, origin)) {
      last_.bytes += cut.bytes;
      return;
    }
    flush();
    last_ = cut;
    origin_ = origin;
  }
  std::vector<Part> take() {
    flush();
    return std::move(parts_);
  }

 private:
  bool joins(const Cut& cut, const Origin& origin) const {
    const std::uint64_t bytes = last_.bytes + cut.bytes;
    const auto fits = [&](const Page& last, const Page& page, std::uint64_t before,
                          std::uint64_t at) {
      return last.pieces == 1 && page.pieces == 1 && before + last_.bytes == at &&
             last.block_stride == page.block_stride && bytes <= page.block_stride;
    };
    return last_.bytes != 0 && fits(last_.source, cut.source, origin_.source, origin.source) &&
           fits(last_.destination, cut.destination, origin_.destination, origin.destination);
  }
  void flush() {
    if (last_.bytes == 0) return;
    for (Page* page : {&last_.source, &last_.destination})
      if (page->pieces == 1) page->step = page->block_stride;
    const auto same = std::find_if(parts_.begin(), parts_.end(),
                                   [&](const Part& part) { return part.cut == last_; });
    if (same == parts_.end())
      parts_.push_back({last_, {origin_}});
    else
      same->origins.push_back(origin_);
    last_ = {};
  }
  std::vector<Part> parts_;
  Cut last_ = {};  // no bytes: nothing was added yet
  Origin origin_ = {};
};

// Adds the pages of all layers that both ends have.
void addCache(const End& from, const End& to, std::uint64_t chunk_tokens, PartList& parts) {
  const Heads moved = headsMoved(from.cache, from.layout, to.layout);
  if (moved.count == 0) return;
  HeadCut head_cut = cutOf(from, to, chunk_tokens / from.cache.entry_tokens, moved.count);
  const std::uint64_t skip_from = (moved.first - from.heads().first) * from.headStride();
  const std::uint64_t skip_to = (moved.first - to.heads().first) * to.headStride();
  const auto& have = to.cache.layers;
  for (std::size_t i = 0; i < from.cache.layers.size(); ++i) {
    const auto same = std::lower_bound(have.begin(), have.end(), from.cache.layers[i]);
    if (same == have.end() || *same != from.cache.layers[i]) continue;
    const auto j = static_cast<std::size_t>(same - have.begin());
    for (std::size_t tensor = 0; tensor < from.cache.tensors; ++tensor) {
      const KvPlace& a = from.group.places[from.first_place + i * from.cache.tensors + tensor];
      const KvPlace& b = to.group.places[to.first_place + j * to.cache.tensors + tensor];
      head_cut.cut.source.block_stride = a.stride;
      head_cut.cut.destination.block_stride = b.stride;
      for (std::uint32_t head = 0; head < head_cut.heads; ++head)
        parts.add(head_cut.cut, {a.address + skip_from + head * from.headStride(),
                                 b.address + skip_to + head * to.headStride()});
    }
  }
}

Status checkAlike(const KvCache& source, const KvCache& destination, const std::string& field) {
  if (source.name != destination.name)
    return bad(kPlanning,
               fmt::format("{} is \"{}\" in the source and \"{}\" in the destination", field,
                           source.name, destination.name),
               "list the caches of both layouts in the same order");
  const auto same = [&](const char* member, std::uint32_t a, std::uint32_t b,
                        const char* remedy) -> Status {
    if (a == b) return Ok{};
    return bad(kPlanning,
               fmt::format("{} (\"{}\").{} is {} in the source and {} in the destination", field,
                           source.name, member, a, b),
               remedy);
  };
  constexpr auto kOneModel = "both layouts have to describe one model";
  VIADUCT_CHECK(same("tensors", source.tensors, destination.tensors, kOneModel));
  VIADUCT_CHECK(same("kv_heads", source.kv_heads, destination.kv_heads,
                     "give the heads of the model, not those of a rank"));
  VIADUCT_CHECK(same("head_size", source.head_size, destination.head_size, kOneModel));
  VIADUCT_CHECK(same("element_bytes", source.element_bytes, destination.element_bytes,
                     "a copy converts no elements: use one type for both KV caches"));
  return same("entry_tokens", source.entry_tokens, destination.entry_tokens, kOneModel);
}

Result<GroupPlan> planGroup(const KvLayout& source, const KvLayout& destination,
                            std::size_t number) {
  const KvGroup& from = source.groups[number];
  const KvGroup& to = destination.groups[number];
  if (from.caches.size() != to.caches.size())
    return bad(kPlanning,
               fmt::format("groups[{}] has {} caches in the source and {} in the destination",
                           number, from.caches.size(), to.caches.size()),
               "divide the caches of both layouts into the same groups");
  GroupPlan out{.source = {from.block_tokens, from.blocks},
                .destination = {to.block_tokens, to.blocks},
                .chunk_tokens = std::gcd(from.block_tokens, to.block_tokens)};
  PartList parts;
  std::size_t from_place = 0, to_place = 0;
  for (std::size_t i = 0; i < from.caches.size(); ++i) {
    const KvCache& a = from.caches[i];
    const KvCache& b = to.caches[i];
    VIADUCT_CHECK(checkAlike(a, b, fmt::format("groups[{}].caches[{}]", number, i)));
    addCache({source, from, a, from_place}, {destination, to, b, to_place}, out.chunk_tokens,
             parts);
    from_place += a.layers.size() * a.tensors;
    to_place += b.layers.size() * b.tensors;
  }
  out.parts = parts.take();
  return out;
}

// Says why no page is moved.
Error nothingMoved(const KvLayout& source, const KvLayout& destination) {
  const auto ranks = kvSourceRanks(source, destination);
  const bool chosen = ranks && std::find(ranks->begin(), ranks->end(), source.rank) != ranks->end();
  if (chosen || !ranks)
    return bad(kPlanning, "the layouts have no layer in common",
               "number layers as in the model, on all pipeline stages");
  return bad(kPlanning,
             fmt::format("rank {} of {} takes nothing from rank {} of {}", destination.rank,
                         destination.tp, source.rank, source.tp),
             fmt::format("its heads come from rank {}", fmt::join(*ranks, ", ")));
}

}  // namespace
}  // namespace viaduct::kv

namespace viaduct {

Result<KvReshard> KvReshard::plan(const KvLayout& source, const KvLayout& destination) {
  VIADUCT_CHECK(kv::checkShape(source, kv::kPlanning, "source "));
  VIADUCT_CHECK(kv::checkShape(destination, kv::kPlanning, "destination "));
  VIADUCT_CHECK(kv::checkPlaces(source, kv::kPlanning, "source "));
  VIADUCT_CHECK(kv::checkPlaces(destination, kv::kPlanning, "destination "));
  if (source.groups.size() != destination.groups.size())
    return kv::bad(kv::kPlanning,
                   fmt::format("the source has {} groups and the destination {}",
                               source.groups.size(), destination.groups.size()),
                   "divide the caches of both layouts into the same groups");
  auto table = std::make_shared<Table>();
  bool moves = false;
  for (std::size_t i = 0; i < source.groups.size(); ++i) {
    VIADUCT_TRY(auto group, kv::planGroup(source, destination, i));
    moves = moves || !group.parts.empty();
    table->groups.push_back(std::move(group));
  }
  if (!moves) return kv::nothingMoved(source, destination);
  KvReshard out;
  out.table_ = std::move(table);
  return out;
}

}  // namespace viaduct
