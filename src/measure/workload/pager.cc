#include "measure/workload/pager.h"

#include <algorithm>

namespace viaduct::measure {
namespace {

// The block with the lowest number is taken first.
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

PrefixCache::PrefixCache(std::uint64_t blocks, std::uint32_t block_tokens)
    : block_tokens_(block_tokens), blocks_(blocks), free_(allOf(blocks)) {}

// The last hash id of a request may stand for fewer tokens.
std::uint64_t PrefixCache::blocksOf(const TraceRequest& request, std::size_t id) const {
  const std::uint64_t first = id * kHashTokens;
  const std::uint64_t tokens = std::min<std::uint64_t>(request.input_length - first, kHashTokens);
  return (tokens + block_tokens_ - 1) / block_tokens_;
}

// Removes ids until there are free blocks, but none of the `keep` most recently used ones.
bool PrefixCache::makeRoom(std::uint64_t blocks, std::uint64_t keep) {
  while (free_.size() < blocks) {
    if (used_.size() <= keep) return false;
    const auto at = entries_.find(used_.back());
    // The block that was free for the shortest time is taken first, so pools get fragmented.
    free_.insert(free_.end(), at->second.blocks.rbegin(), at->second.blocks.rend());
    entries_.erase(at);
    used_.pop_back();
  }
  return true;
}

std::optional<PrefixCache::Taken> PrefixCache::take(const TraceRequest& request) {
  std::uint64_t needed = 0;
  for (std::size_t i = 0; i < request.hash_ids.size(); ++i) needed += blocksOf(request, i);
  if (needed > blocks_) return std::nullopt;
  Taken out;
  const auto hasBlocks = [&](std::size_t i) {
    const auto at = entries_.find(request.hash_ids[i]);
    return at != entries_.end() && at->second.blocks.size() == blocksOf(request, i);
  };
  while (out.hit_ids < request.hash_ids.size() && hasBlocks(out.hit_ids)) {
    out.hit_tokens = std::min<std::uint64_t>(request.input_length,
                                             (out.hit_ids + 1) * std::uint64_t{kHashTokens});
    ++out.hit_ids;
  }
  // An id behind the prefix is computed again, because its tokens depend on those before.
  for (std::size_t i = out.hit_ids; i < request.hash_ids.size(); ++i)
    if (const auto at = entries_.find(request.hash_ids[i]); at != entries_.end()) {
      free_.insert(free_.end(), at->second.blocks.rbegin(), at->second.blocks.rend());
      used_.erase(at->second.place);
      entries_.erase(at);
    }
  // The start of a prefix is the most recently used, so that its end leaves first.
  for (std::uint64_t i = out.hit_ids; i > 0; --i) {
    Entry& entry = entries_.at(request.hash_ids[i - 1]);
    used_.splice(used_.begin(), used_, entry.place);
  }
  std::uint64_t fresh = 0;
  for (std::size_t i = out.hit_ids; i < request.hash_ids.size(); ++i) fresh += blocksOf(request, i);
  if (!makeRoom(fresh, out.hit_ids)) return std::nullopt;
  for (std::uint64_t i = 0; i < out.hit_ids; ++i) {
    const BlockIds& blocks = entries_.at(request.hash_ids[i]).blocks;
    out.blocks.insert(out.blocks.end(), blocks.begin(), blocks.end());
  }
  auto behind = used_.begin();
  std::advance(behind, static_cast<std::ptrdiff_t>(out.hit_ids));
  for (std::size_t i = out.hit_ids; i < request.hash_ids.size(); ++i) {
    Entry entry;
    takeFree(free_, blocksOf(request, i), entry.blocks);
    out.blocks.insert(out.blocks.end(), entry.blocks.begin(), entry.blocks.end());
    entry.place = used_.insert(behind, request.hash_ids[i]);
    entries_.emplace(request.hash_ids[i], std::move(entry));
  }
  return out;
}

DecodeCache::DecodeCache(std::uint64_t blocks) : blocks_(blocks), free_(allOf(blocks)) {}

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
    const auto [at, fresh] = last_.try_emplace(block, request);
    if (fresh) continue;
    out.after = std::max(out.after.value_or(0), at->second);
    at->second = request;
  }
  owners_.push_back({request, out.blocks});
  return out;
}

}  // namespace viaduct::measure
