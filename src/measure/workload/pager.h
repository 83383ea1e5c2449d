// The caches of a replay: pools of blocks, from which requests take and to which old ones give
// back. Threads: one at a time.
#pragma once

#include <cstdint>
#include <list>
#include <optional>
#include <unordered_map>
#include <vector>

#include "measure/workload/trace.h"

namespace viaduct::measure {

using BlockIds = std::vector<std::uint32_t>;

// The cache of prefill. It keeps the blocks of each hash id until another request needs room; the
// least recently used ids leave first.
class PrefixCache {
 public:
  // `block_tokens` divide 512, or are a multiple of it.
  PrefixCache(std::uint64_t blocks, std::uint32_t block_tokens);

  struct Taken {
    BlockIds blocks = {};       // of the whole input, in the order of its tokens
    std::uint64_t hit_ids = 0;  // hash ids of the longest cached prefix
    std::uint64_t hit_tokens = 0;
  };
  // Nothing: the request needs more blocks than the pool has.
  std::optional<Taken> take(const TraceRequest& request);

 private:
  struct Entry {
    BlockIds blocks = {};
    std::list<std::uint64_t>::iterator place = {};  // in `used_`
  };
  bool makeRoom(std::uint64_t blocks, std::uint64_t now);
  std::uint64_t blocksOf(const TraceRequest& request, std::size_t id) const;

  const std::uint32_t block_tokens_;
  const std::uint64_t blocks_;
  BlockIds free_ = {};
  std::list<std::uint64_t> used_;  // hash ids, the most recently used first
  std::unordered_map<std::uint64_t, Entry> entries_;
};

// The cache of decode. Each request has blocks of its own, until a later request needs them. The
// oldest request gives its blocks back first.
class DecodeCache {
 public:
  explicit DecodeCache(std::uint64_t blocks);

  struct Taken {
    BlockIds blocks = {};
    // The last request whose blocks this one gets. Its transfer has to be over.
    std::optional<std::uint64_t> after = {};
  };
  std::optional<Taken> take(std::uint64_t request, std::uint64_t blocks);

 private:
  struct Owner {
    std::uint64_t request = 0;
    BlockIds blocks = {};
  };
  const std::uint64_t blocks_;
  BlockIds free_ = {};
  std::list<Owner> owners_;                                // the oldest first
  std::unordered_map<std::uint32_t, std::uint64_t> last_;  // owner of each block so far
};

}  // namespace viaduct::measure
