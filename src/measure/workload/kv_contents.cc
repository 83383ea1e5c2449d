#include "measure/workload/kv_contents.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstring>

#include "base/random.h"

namespace viaduct::measure {
namespace {

constexpr std::uint64_t kMemoryPage = 4096;
constexpr std::uint64_t kBulkSample = std::uint64_t{64} << 10U;  // a word of each is checked

const Indices& blocksAt(const KvBlocks& blocks, KvSide side) {
  return side == KvSide::kSource ? blocks.source : blocks.destination;
}

// The heads of a rank, in the numbers of the model.
std::pair<std::uint32_t, std::uint32_t> headsAt(std::uint32_t all, const KvEnd& end) {
  if (end.tp <= all) return {end.rank * (all / end.tp), all / end.tp};
  return {end.rank / (end.tp / all), 1};
}

}  // namespace

KvContents::KvContents(const KvPoint& point, std::uint64_t seed)
    : point_(point), seed_(seed), tables_(tablesOf(point)) {
  source_ = placesOf(KvSide::kSource);
  destination_ = placesOf(KvSide::kDestination);
  numberEntries();
}

std::vector<KvContents::Place> KvContents::placesOf(KvSide side) const {
  std::vector<Place> out;
  const auto layout = layoutOf(point_, side, 0);
  if (!layout || tables_.empty()) return out;
  for (std::size_t g = 0; g < layout->groups.size(); ++g) {
    const KvGroup& group = layout->groups[g];
    const KvBlocks& kept = tables_.front()[g];
    std::size_t number = 0;
    for (const KvCache& cache : group.caches)
      for (const std::uint32_t layer : cache.layers)
        for (std::uint32_t tensor = 0; tensor < cache.tensors; ++tensor) {
          const KvPlace& place = group.places[number++];
          const auto [first_head, heads] = headsAt(cache.kv_heads, point_.end(side));
          const std::uint64_t entries = group.block_tokens / cache.entry_tokens;
          const std::uint64_t from = kept.first_token / group.block_tokens;
          out.push_back({.group = g,
                         .layer = layer,
                         .tensor = tensor,
                         .at = place.address,
                         .stride = place.stride,
                         .page_bytes = kvPageBytes(*layout, group, cache),
                         .entry_bytes = std::uint64_t{cache.head_size} * cache.element_bytes,
                         .block_tokens = group.block_tokens,
                         .block_entries = entries,
                         .first_head = first_head,
                         .heads = heads,
                         .all_heads = cache.kv_heads,
                         .begin = kept.first_token / cache.entry_tokens,
                         .end = (from + blocksAt(kept, side).size()) * entries});
        }
  }
  return out;
}

// Limits the entries to those that both ends have, and numbers them alike at both ends.
void KvContents::numberEntries() {
  for (std::size_t i = 0; i < source_.size(); ++i) {
    Place &here = source_[i], &there = destination_[i];
    here.end = there.end = std::min(here.end, there.end);
    here.first_number = there.first_number = request_entries_;
    request_entries_ += here.end * here.all_heads;
    most_entry_bytes_ = std::max(most_entry_bytes_, here.entry_bytes);
  }
}

// Calls `visit(request, page)` for the pages of a set, until it returns false.
template <class F>
bool KvContents::eachPage(KvSide side, std::uint64_t set, F visit) const {
  const auto& places = side == KvSide::kSource ? source_ : destination_;
  const auto& others = side == KvSide::kSource ? destination_ : source_;
  for (std::uint32_t r = 0; r < point_.requests; ++r) {
    const std::uint64_t request = set * point_.requests + r;
    for (std::size_t p = 0; p < places.size(); ++p) {
      const Place &place = places[p], &other = others[p];
      const KvBlocks& blocks = tables_[request][place.group];
      const std::uint32_t head_begin = std::max(place.first_head, other.first_head);
      const std::uint32_t head_end =
          std::min(place.first_head + place.heads, other.first_head + other.heads);
      std::uint64_t first = blocks.first_token / place.block_tokens * place.block_entries;
      for (const std::uint32_t block : blocksAt(blocks, side)) {
        const Page page{.place = place,
                        .at = place.at + block * place.stride,
                        .first_entry = first,
                        .begin = std::max(place.begin, first) - first,
                        .end = std::min(place.end, first + place.block_entries) - first,
                        .head_begin = head_begin - place.first_head,
                        .head_end = head_end - place.first_head};
        if (!visit(request, page)) return false;
        first += place.block_entries;
      }
    }
  }
  return true;
}

std::uint64_t KvContents::offsetOf(KvSide side, const Page& page, std::uint64_t entry,
                                   std::uint32_t head) const {
  const Place& place = page.place;
  const std::uint64_t number = point_.end(side).order == KvOrder::kNhd
                                   ? entry * place.heads + head
                                   : head * place.block_entries + entry;
  return page.at + number * place.entry_bytes;
}

std::uint64_t KvContents::numberOf(std::uint64_t request, const Page& page, std::uint64_t entry,
                                   std::uint32_t head) const {
  const Place& place = page.place;
  return request * request_entries_ + place.first_number +
         (page.first_entry + entry) * place.all_heads + place.first_head + head;
}

Pattern KvContents::pattern(std::uint64_t epoch) const {
  const std::uint64_t requests = std::uint64_t{point_.sets} * point_.requests;
  return {.seed = seed_,
          .block_bytes = point_.bulk ? point_.request_bytes : most_entry_bytes_,
          .blocks = point_.bulk ? requests : requests * request_entries_,
          .epoch = epoch % kEpochs};
}

void KvContents::touch(KvSide side, std::span<std::byte> pool, std::uint64_t set) const {
  const auto write = [&](std::uint64_t at, std::uint64_t bytes) {
    for (std::uint64_t done = 0; done < bytes; done += kMemoryPage) pool[at + done] = std::byte{0};
  };
  if (point_.bulk)
    return write(set * point_.requests * point_.request_bytes,
                 point_.requests * point_.request_bytes);
  eachPage(side, set, [&](std::uint64_t, const Page& page) {
    write(page.at, page.place.page_bytes);
    return true;
  });
}

void KvContents::fill(std::span<std::byte> pool, std::uint64_t epoch, std::uint64_t set) const {
  const Pattern now = pattern(epoch);
  if (point_.bulk) {
    for (std::uint32_t r = 0; r < point_.requests; ++r) {
      const std::uint64_t request = set * point_.requests + r;
      now.fill(pool.subspan(request * point_.request_bytes, point_.request_bytes), request);
    }
    return;
  }
  eachPage(KvSide::kSource, set, [&](std::uint64_t request, const Page& page) {
    for (std::uint64_t e = page.begin; e < page.end; ++e)
      for (std::uint32_t h = page.head_begin; h < page.head_end; ++h)
        now.fill(pool.subspan(offsetOf(KvSide::kSource, page, e, h), page.place.entry_bytes),
                 numberOf(request, page, e, h));
    return true;
  });
}

// Returns a description of the word at `offset` of a block, if it is wrong.
std::optional<std::string> KvContents::wrongWord(std::span<const std::byte> memory,
                                                 const Pattern& now, std::uint64_t number,
                                                 std::uint64_t offset) const {
  ++checked_;
  const std::uint64_t word = now.word(number, offset);
  const auto found = memory.subspan(offset);
  if (std::memcmp(found.data(), &word, std::min<std::size_t>(found.size(), kWordBytes)) == 0)
    return std::nullopt;
  return fmt::format("at offset {}: {}", offset, now.describe(found, number, offset));
}

std::optional<std::string> KvContents::verifyBulk(std::span<const std::byte> pool,
                                                  const Pattern& now, std::uint64_t set,
                                                  bool all) const {
  for (std::uint32_t r = 0; r < point_.requests; ++r) {
    const std::uint64_t request = set * point_.requests + r;
    const auto memory = pool.subspan(request * point_.request_bytes, point_.request_bytes);
    base::Random random(seed_ ^ now.epoch << 32U ^ request);
    std::optional<std::string> wrong;
    if (all) {
      checked_ += memory.size() / kWordBytes;
      if (const auto found = now.verify(memory, request)) wrong = found->text;
    } else {
      const std::uint64_t last = (memory.size() - 1) / kWordBytes * kWordBytes;
      for (std::uint64_t at = 0; at < memory.size() && !wrong; at += kBulkSample)
        wrong = wrongWord(memory, now, request,
                          std::min(at + random.below(kBulkSample) / kWordBytes * kWordBytes, last));
      if (!wrong) wrong = wrongWord(memory, now, request, 0);
      if (!wrong) wrong = wrongWord(memory, now, request, last);
    }
    if (wrong) return fmt::format("request {} of set {} is wrong {}", r, set, *wrong);
  }
  return std::nullopt;
}

std::optional<std::string> KvContents::verifyPage(std::span<const std::byte> pool,
                                                  const Pattern& now, std::uint64_t request,
                                                  const Page& page, bool all) const {
  const std::uint64_t bytes = page.place.entry_bytes;
  const auto entryAt = [&](std::uint64_t e, std::uint32_t h) {
    return pool.subspan(offsetOf(KvSide::kDestination, page, e, h), bytes);
  };
  const auto said = [&](std::uint64_t e, std::uint32_t h, const std::string& text) {
    return fmt::format("layer {} tensor {} head {} entry {} of request {} is wrong {}",
                       page.place.layer, page.place.tensor, page.place.first_head + h,
                       page.first_entry + e, request, text);
  };
  if (page.begin == page.end || page.head_begin == page.head_end) return std::nullopt;
  if (all) {
    for (std::uint64_t e = page.begin; e < page.end; ++e)
      for (std::uint32_t h = page.head_begin; h < page.head_end; ++h) {
        checked_ += (bytes + kWordBytes - 1) / kWordBytes;
        if (const auto wrong = now.verify(entryAt(e, h), numberOf(request, page, e, h)))
          return said(e, h, fmt::format("from offset {}: {}", wrong->offset, wrong->text));
      }
    return std::nullopt;
  }
  base::Random random(seed_ ^ now.epoch << 32U ^ page.at);
  const std::uint64_t last = (bytes - 1) / kWordBytes * kWordBytes;
  struct Spot {
    std::uint64_t entry;
    std::uint32_t head;
    std::uint64_t offset;
  };
  const auto heads = page.head_end - page.head_begin;
  for (const Spot& spot :
       {Spot{page.begin, page.head_begin, 0}, Spot{page.end - 1, page.head_end - 1, last},
        Spot{page.begin + random.below(page.end - page.begin),
             page.head_begin + static_cast<std::uint32_t>(random.below(heads)),
             random.below(last / kWordBytes + 1) * kWordBytes}})
    if (const auto wrong = wrongWord(entryAt(spot.entry, spot.head), now,
                                     numberOf(request, page, spot.entry, spot.head), spot.offset))
      return said(spot.entry, spot.head, *wrong);
  return std::nullopt;
}

std::optional<std::string> KvContents::verify(std::span<const std::byte> pool, std::uint64_t epoch,
                                              std::uint64_t set, bool all) const {
  const Pattern now = pattern(epoch);
  if (point_.bulk) return verifyBulk(pool, now, set, all);
  std::optional<std::string> wrong;
  eachPage(KvSide::kDestination, set, [&](std::uint64_t request, const Page& page) {
    wrong = verifyPage(pool, now, request, page, all);
    return !wrong;
  });
  return wrong;
}

}  // namespace viaduct::measure
