#include "measure/workload/kv_cells.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

namespace viaduct::measure {
namespace {

const Indices& blocksAt(const KvBlocks& blocks, KvSide side) {
  return side == KvSide::kSource ? blocks.source : blocks.destination;
}

// Returns the first head and the number of heads that a rank has of the model's `all` heads.
std::pair<std::uint32_t, std::uint32_t> headsAt(std::uint32_t all, const KvEnd& end) {
  if (end.tp <= all) return {end.rank * (all / end.tp), all / end.tp};
  return {end.rank / (end.tp / all), 1};
}

}  // namespace

std::vector<KvTensor> tensorsOf(const KvLayout& layout) {
  std::vector<KvTensor> out;
  for (std::size_t g = 0; g < layout.groups.size(); ++g) {
    const KvGroup& group = layout.groups[g];
    std::size_t number = 0;
    for (const KvCache& cache : group.caches)
      for (const std::uint32_t layer : cache.layers)
        for (std::uint32_t tensor = 0; tensor < cache.tensors; ++tensor) {
          const KvPlace& place = group.places[number++];
          out.push_back({.group = g,
                         .layer = layer,
                         .tensor = tensor,
                         .at = place.address,
                         .stride = place.stride,
                         .page_bytes = kvPageBytes(layout, group, cache),
                         .entry_bytes = std::uint64_t{cache.head_size} * cache.element_bytes,
                         .block_entries = group.block_tokens / cache.entry_tokens,
                         .entry_tokens = cache.entry_tokens,
                         .all_heads = cache.kv_heads});
        }
  }
  return out;
}

KvCells::KvCells(const KvPoint& point) : point_(point), tables_(tablesOf(point)) {
  source_ = partsOf(KvSide::kSource);
  destination_ = partsOf(KvSide::kDestination);
  numberEntries();
}

std::vector<KvCells::Part> KvCells::partsOf(KvSide side) const {
  std::vector<Part> out;
  const auto layout = layoutOf(point_, side, 0);
  if (!layout || tables_.empty()) return out;
  for (const KvTensor& tensor : tensorsOf(*layout)) {
    const KvBlocks& kept = tables_.front()[tensor.group];
    Part& part = out.emplace_back(Part{tensor});
    std::tie(part.first_head, part.heads) = headsAt(tensor.all_heads, point_.end(side));
    part.block_tokens = layout->groups[tensor.group].block_tokens;
    part.begin = kept.first_token / tensor.entry_tokens;
    part.end =
        (kept.first_token / part.block_tokens + blocksAt(kept, side).size()) * tensor.block_entries;
  }
  return out;
}

// Limits the entries to those that both ends have, and numbers them alike at both ends.
void KvCells::numberEntries() {
  for (std::size_t i = 0; i < source_.size(); ++i) {
    Part &here = source_[i], &there = destination_[i];
    here.end = there.end = std::min(here.end, there.end);
    here.first_number = there.first_number = request_entries_;
    request_entries_ += here.end * here.all_heads;
    most_entry_bytes_ = std::max(most_entry_bytes_, here.entry_bytes);
  }
}

Pattern KvCells::pattern(std::uint64_t seed) const {
  const std::uint64_t requests = std::uint64_t{point_.sets} * point_.requests;
  return {.seed = seed,
          .block_bytes = point_.bulk ? point_.request_bytes : most_entry_bytes_,
          .blocks = point_.bulk ? requests : requests * request_entries_};
}

Wrong KvCells::each(KvSide side, std::span<std::byte> pool, std::uint64_t epoch, std::uint64_t set,
                    const CellVisit& visit) const {
  for (std::uint32_t r = 0; r < point_.requests; ++r) {
    const std::uint64_t request = set * point_.requests + r;
    if (point_.bulk) {
      const std::uint64_t bytes = point_.request_bytes;
      if (const auto wrong = visit(
              {.memory = pool.subspan(request * bytes, bytes), .number = request, .epoch = epoch}))
        return wrong->named(fmt::format("request {} of set {}", r, set));
      continue;
    }
    for (std::size_t part = 0; part < source_.size(); ++part)
      if (auto wrong = eachPage(side, pool, epoch, request, part, visit)) return wrong;
  }
  return std::nullopt;
}

// Lists the cells of the pages that a request has of one tensor.
Wrong KvCells::eachPage(KvSide side, std::span<std::byte> pool, std::uint64_t epoch,
                        std::uint64_t request, std::size_t number, const CellVisit& visit) const {
  const bool is_source = side == KvSide::kSource;
  const Part& part = (is_source ? source_ : destination_)[number];
  const Part& other = (is_source ? destination_ : source_)[number];
  const std::uint64_t head = std::max(part.first_head, other.first_head);
  const std::uint64_t head_end =
      std::min(part.first_head + part.heads, other.first_head + other.heads);
  if (head >= head_end) return std::nullopt;
  const bool by_token = point_.end(side).order == KvOrder::kNhd;
  const CellStep across{.count = head_end - head,
                        .bytes = part.entry_bytes * (by_token ? 1 : part.block_entries),
                        .numbers = 1};
  const KvBlocks& blocks = tables_[request][part.group];
  std::uint64_t first = blocks.first_token / part.block_tokens * part.block_entries;
  for (const std::uint32_t block : blocksAt(blocks, side)) {
    const std::uint64_t begin = std::max(part.begin, first);
    const std::uint64_t end = std::min(part.end, first + part.block_entries);
    const std::uint64_t in_page = begin - std::exchange(first, first + part.block_entries);
    if (begin >= end) continue;
    const CellStep down{.count = end - begin,
                        .bytes = part.entry_bytes * (by_token ? part.heads : 1),
                        .numbers = part.all_heads};
    const std::uint64_t bytes =
        (down.count - 1) * down.bytes + (across.count - 1) * across.bytes + part.entry_bytes;
    const auto wrong = visit(
        {.memory =
             part.page(pool, block)
                 .subspan(in_page * down.bytes + (head - part.first_head) * across.bytes, bytes),
         .number = request * request_entries_ + part.first_number + begin * part.all_heads + head,
         .epoch = epoch,
         .rows = down,
         .columns = across});
    if (wrong)
      return wrong->named(fmt::format("layer {} tensor {} head {} entry {} of request {}",
                                      part.layer, part.tensor, head + wrong->column,
                                      begin + wrong->row, request));
  }
  return std::nullopt;
}

}  // namespace viaduct::measure
