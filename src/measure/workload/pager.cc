#include "measure/workload/pager.h"

#include <algorithm>
#include <iterator>
#include <utility>

#include "base/splitmix.h"

namespace viaduct::measure {
namespace {

// Returns all blocks, in reverse, so that takeFree() takes the lowest number first.
BlockIds allOf(std::uint64_t blocks) {
  BlockIds out;
  for (std::uint64_t i = blocks; i > 0; --i) out.push_back(static_cast<std::uint32_t>(i - 1));
  return out;
}

void takeFree(BlockIds& free, std::uint64_t count, BlockIds& into) {
  for (; count > 0; --count) {
    into.push_back(free.back());
    free.pop_back();
  }
}

}  // namespace

PrefixCache::PrefixCache(std::uint64_t blocks, std::uint32_t block_tokens, std::uint32_t id_tokens)
    : block_tokens_(block_tokens),
      unit_tokens_(std::max(block_tokens, id_tokens)),
      unit_ids_(id_tokens == 0 ? 1 : unit_tokens_ / id_tokens),
      blocks_(blocks),
      free_(allOf(blocks)) {}

std::size_t PrefixCache::Hash::operator()(const Key& key) const {
  return base::splitmix(base::splitmix(key.prefix + base::kSplitmixStep) ^ key.id) + key.blocks;
}

// Returns the number of blocks of a unit. The last unit of a request may have fewer tokens.
std::uint32_t PrefixCache::blocksOf(const TraceRequest& request, std::uint64_t unit) const {
  const std::uint64_t first = unit * unit_tokens_;
  const std::uint64_t tokens = std::min<std::uint64_t>(request.input_length - first, unit_tokens_);
  return static_cast<std::uint32_t>((tokens + block_tokens_ - 1) / block_tokens_);
}

// Returns one id for each unit whose tokens all have ids. A request must have at most one id for
// each `id_tokens` tokens of its input.
std::vector<std::uint64_t> PrefixCache::idsOf(const TraceRequest& request) const {
  if (unit_ids_ == 1) return request.hash_ids;
  std::vector<std::uint64_t> out;
  const std::vector<std::uint64_t>& ids = request.hash_ids;
  for (std::size_t i = 0; i < ids.size(); i += unit_ids_) {
    const std::size_t end = std::min<std::size_t>(i + unit_ids_, ids.size());
    const std::uint64_t id_tokens = unit_tokens_ / unit_ids_;
    const bool whole = end - i == unit_ids_ || end * id_tokens >= request.input_length;
    if (!whole) break;
    std::uint64_t mixed = 0;
    for (std::size_t k = i; k < end; ++k)
      mixed = base::splitmix(mixed + base::kSplitmixStep) ^ ids[k];
    out.push_back(mixed);
  }
  return out;
}

// Removes the least recently used entries until `blocks` blocks are free, but keeps the `keep` most
// recently used ones. A longer prefix leaves before the prefix that it begins with.
bool PrefixCache::makeRoom(std::uint64_t blocks, std::uint64_t keep) {
  while (free_.size() < blocks) {
    if (used_.size() <= keep) return false;
    const auto at = entries_.find(used_.back());
    // takeFree() takes the most recently freed block first, so pools get fragmented.
    free_.insert(free_.end(), at->second.blocks.rbegin(), at->second.blocks.rend());
    entries_.erase(at);
    used_.pop_back();
  }
  return true;
}

std::vector<PrefixCache::Entry*> PrefixCache::longestPrefix(const TraceRequest& request,
                                                            const std::vector<std::uint64_t>& ids) {
  std::vector<Entry*> out;
  std::uint64_t prefix = 0;
  for (std::size_t i = 0; i < ids.size(); ++i) {
    const auto at = entries_.find({prefix, ids[i], blocksOf(request, i)});
    if (at == entries_.end()) break;
    prefix = at->second.number;
    out.push_back(&at->second);
  }
  return out;
}

std::optional<PrefixCache::Taken> PrefixCache::take(const TraceRequest& request) {
  const std::uint64_t needed =
      (std::uint64_t{request.input_length} + block_tokens_ - 1) / block_tokens_;
  if (needed > blocks_) return std::nullopt;
  const std::vector<std::uint64_t> ids = idsOf(request);
  const std::vector<Entry*> hits = longestPrefix(request, ids);
  Taken out;
  out.hit_ids = std::min<std::uint64_t>(hits.size() * unit_ids_, request.hash_ids.size());
  out.hit_tokens = std::min<std::uint64_t>(hits.size() * unit_tokens_, request.input_length);
  // Makes the start of the prefix the most recently used entry, so that the prefix's end leaves
  // first.
  for (auto hit = hits.rbegin(); hit != hits.rend(); ++hit)
    used_.splice(used_.begin(), used_, (*hit)->place);
  std::uint64_t fresh = needed;
  for (const Entry* const hit : hits) {
    fresh -= hit->blocks.size();
    out.blocks.insert(out.blocks.end(), hit->blocks.begin(), hit->blocks.end());
  }
  if (!makeRoom(fresh, hits.size())) return std::nullopt;
  auto behind = used_.begin();
  std::advance(behind, static_cast<std::ptrdiff_t>(hits.size()));
  std::uint64_t prefix = hits.empty() ? 0 : hits.back()->number;
  const auto add = [&](Key key, std::uint64_t number) {
    Entry entry{.number = number};
    takeFree(free_, key.blocks, entry.blocks);
    out.blocks.insert(out.blocks.end(), entry.blocks.begin(), entry.blocks.end());
    entry.place = used_.insert(behind, key);
    entries_.emplace(key, std::move(entry));
  };
  for (std::size_t i = hits.size(); i < ids.size(); ++i) {
    add({prefix, ids[i], blocksOf(request, i)}, last_number_ + 1);
    prefix = ++last_number_;
  }
  // Tokens without ids get an entry whose key no request looks up, so they are never hits.
  if (const auto rest = static_cast<std::uint32_t>(needed - out.blocks.size()); rest != 0) {
    add({last_number_ + 1, 0, rest}, last_number_ + 1);
    ++last_number_;
  }
  return out;
}

DecodeCache::DecodeCache(std::uint64_t blocks)
    : blocks_(blocks), free_(allOf(blocks)), last_(blocks) {}

std::optional<DecodeCache::Taken> DecodeCache::take(std::uint64_t request, std::uint64_t blocks) {
  if (blocks > blocks_) return std::nullopt;
  while (free_.size() < blocks) {
    const BlockIds& oldest = owners_.front().blocks;
    free_.insert(free_.end(), oldest.rbegin(), oldest.rend());
    owners_.pop_front();
  }
  Taken out;
  takeFree(free_, blocks, out.blocks);
  for (const std::uint32_t block : out.blocks) {
    if (last_[block] > 0) out.after = std::max(out.after.value_or(0), last_[block] - 1);
    last_[block] = request + 1;
  }
  owners_.push_back({request, out.blocks});
  return out;
}

}  // namespace viaduct::measure
