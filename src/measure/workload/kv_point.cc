#include "measure/workload/kv_point.h"

#include <fmt/format.h>
#include <viaduct/kv_models.h>

#include <algorithm>
#include <cmath>
#include <numeric>

#include "base/random.h"

namespace viaduct::measure {
namespace {

constexpr std::uint64_t kSpareBlocks = 8;

// The tokens that a request keeps of a group, and the number of blocks they fill at each end.
struct KeptTokens {
  std::uint64_t first = 0;  // the start of a block at both ends, if one size divides the other
  std::uint64_t source_blocks = 0, destination_blocks = 0;
};

KeptTokens keptOf(const KvGroup& source, const KvGroup& destination, std::uint64_t tokens) {
  const auto up_to = [&](const KvGroup& group) {
    return (tokens + group.block_tokens - 1) / group.block_tokens;
  };
  const KvGroup& coarse = source.block_tokens > destination.block_tokens ? source : destination;
  const std::uint64_t first = (up_to(coarse) - kvBlocksOf(coarse, tokens)) * coarse.block_tokens;
  return {first, up_to(source) - first / source.block_tokens,
          up_to(destination) - first / destination.block_tokens};
}

// Returns a random permutation of the pool's blocks at one end. Each block table takes a slice of
// the permutation.
std::vector<std::uint32_t> permutationOf(const KvPoint& point, KvSide side) {
  const KvEnd& end = point.end(side);
  std::vector<std::uint32_t> out(end.pool);
  std::iota(out.begin(), out.end(), 0U);
  const std::uint64_t own = side == KvSide::kSource ? 0 : 1000;
  base::Random random(point.seed * 1'000'003 + point.tokens * std::uint64_t{31} + end.block +
                      7 * point.model.size() + own);
  for (std::size_t i = out.size(); i > 1; --i) std::swap(out[i - 1], out[random.below(i)]);
  return out;
}

std::uint64_t bytesOf(const Selection& selection) {
  if (selection.indices.empty()) return selection.blocks.bytes();
  std::uint64_t bytes = 0;
  for (const std::uint32_t index : selection.indices) bytes += selection.blocks[index].bytes;
  return bytes;
}

std::uint64_t tensorsOf(const KvGroup& group) {
  std::uint64_t out = 0;
  for (const KvCache& cache : group.caches) out += cache.layers.size() * cache.tensors;
  return out;
}

}  // namespace

double usualKvSlack(std::uint32_t requests) { return std::max(2.0, requests * 1.25) / requests; }

Result<KvLayout> layoutOf(const KvPoint& point, KvSide side, std::uint64_t base) {
  const KvEnd& end = point.end(side);
  VIADUCT_TRY(KvModel model, kvModel(point.model));
  model.layout.tp = end.tp;
  model.layout.rank = end.rank;
  model.layout.order = end.order;
  for (KvGroup& group : model.layout.groups)
    if (end.block != 0) group.block_tokens = end.block;
  return arrangeKv(std::move(model.layout), end.arrangement, base,
                   std::max<std::uint64_t>(end.pool, 1));
}

Result<KvPoint> completed(KvPoint point, double slack) {
  point.source.pool = point.destination.pool = 0;
  VIADUCT_TRY(const KvLayout from, layoutOf(point, KvSide::kSource, 0));
  VIADUCT_TRY(const KvLayout to, layoutOf(point, KvSide::kDestination, 0));
  VIADUCT_TRY(const auto ranks, kvSourceRanks(from, to));
  point.source.rank = ranks.front();
  std::uint64_t source_blocks = 0, destination_blocks = 0, source_pages = 0, destination_pages = 0;
  for (std::size_t i = 0; i < from.groups.size(); ++i) {
    const KeptTokens kept = keptOf(from.groups[i], to.groups[i], point.tokens);
    source_blocks += kept.source_blocks;
    destination_blocks += kept.destination_blocks;
    source_pages += kept.source_blocks * tensorsOf(from.groups[i]);
    destination_pages += kept.destination_blocks * tensorsOf(to.groups[i]);
  }
  point.pages = std::max(source_pages, destination_pages);
  const double requests = std::max(slack, 1.0) * point.sets * point.requests;
  const auto pool_for = [&](std::uint64_t blocks) {
    return static_cast<std::uint64_t>(std::ceil(static_cast<double>(blocks) * requests)) +
           kSpareBlocks;
  };
  point.source.pool = pool_for(source_blocks);
  point.destination.pool = pool_for(destination_blocks);
  for (const KvSide side : {KvSide::kSource, KvSide::kDestination}) {
    VIADUCT_TRY(const KvLayout layout, layoutOf(point, side, 0));
    (side == KvSide::kSource ? point.source : point.destination).bytes = kvExtent(layout).bytes;
  }
  KvPoint paged = point;
  paged.bulk = false;
  VIADUCT_TRY(const KvSides sides, KvSides::make(paged, 0, 0));
  VIADUCT_TRY(const KvSelections first, sides.of(0, 0));
  point.request_bytes = bytesOf(first.source);
  return point;
}

std::vector<KvRequestBlocks> tablesOf(const KvPoint& point) {
  const auto from = layoutOf(point, KvSide::kSource, 0);
  const auto to = layoutOf(point, KvSide::kDestination, 0);
  if (!from || !to) return {};  // completed() has checked both
  const std::vector<std::uint32_t> here = permutationOf(point, KvSide::kSource);
  const std::vector<std::uint32_t> there = permutationOf(point, KvSide::kDestination);
  std::vector<KvRequestBlocks> out(std::size_t{point.sets} * point.requests);
  std::size_t at_source = 0, at_destination = 0;
  const auto take = [](const std::vector<std::uint32_t>& all, std::size_t& at, std::uint64_t n) {
    const std::size_t from_here = at;
    at += n;
    return Indices(std::span(all).subspan(from_here, n));
  };
  for (KvRequestBlocks& request : out)
    for (std::size_t i = 0; i < from->groups.size(); ++i) {
      const KeptTokens kept = keptOf(from->groups[i], to->groups[i], point.tokens);
      request.push_back({.source = take(here, at_source, kept.source_blocks),
                         .destination = take(there, at_destination, kept.destination_blocks),
                         .first_token = kept.first});
    }
  return out;
}

Result<KvSides> KvSides::make(const KvPoint& point, std::uint64_t source_base,
                              std::uint64_t destination_base) {
  KvSides out;
  out.point_ = point;
  out.source_base_ = source_base;
  out.destination_base_ = destination_base;
  VIADUCT_TRY(out.source_, layoutOf(point, KvSide::kSource, source_base));
  VIADUCT_TRY(out.destination_, layoutOf(point, KvSide::kDestination, destination_base));
  out.tables_ = tablesOf(point);
  return out;
}

Result<KvSelections> KvSides::of(std::uint64_t set, std::uint32_t request) const {
  const std::uint64_t number = set * point_.requests + request;
  if (!point_.bulk) {
    VIADUCT_TRY(const KvReshard reshard, KvReshard::plan(source_, destination_));
    return reshard.select(tables_[number]);
  }
  const auto piece = [&](std::uint64_t base) {
    return Blocks::strided(
        {.base = base + number * point_.request_bytes, .bytes = point_.request_bytes, .count = 1});
  };
  VIADUCT_TRY(Blocks source, piece(source_base_));
  VIADUCT_TRY(Blocks destination, piece(destination_base_));
  return KvSelections{.source = {.blocks = std::move(source)},
                      .destination = {.blocks = std::move(destination)}};
}

std::string textOf(const KvPoint& point) {
  const KvEnd &from = point.source, &to = point.destination;
  const auto both = [](const auto& a, const auto& b) {
    return a == b ? fmt::format("{}", a) : fmt::format("{} to {}", a, b);
  };
  return fmt::format("{}, {} tokens, block {}, TP {}, {}, {}", point.model, point.tokens,
                     from.block == 0 ? "of the model" : both(from.block, to.block),
                     both(from.tp, to.tp), base::wordOf(kKvOrders, from.order),
                     base::wordOf(kKvArrangements, from.arrangement));
}

}  // namespace viaduct::measure
