// The caches of a replay: pools of blocks. Requests take blocks from a pool, and old requests give
// theirs back. Threads: one at a time.
#pragma once

#include <cstddef>
#include <cstdint>
#include <list>
#include <optional>
#include <unordered_map>
#include <vector>

#include "measure/workload/trace.h"

namespace viaduct::measure {

using BlockIds = std::vector<std::uint32_t>;

// The cache of prefill. It keeps the blocks of each prefix until another request needs room; the
// least recently used prefixes leave first. A prefix grows by units. A unit has the tokens of a
// hash id, or of a block if a block has more tokens.
class PrefixCache {
 public:
  // One of `block_tokens` and `id_tokens` must divide the other. `id_tokens` 0: requests have no
  // hash ids.
  PrefixCache(std::uint64_t blocks, std::uint32_t block_tokens, std::uint32_t id_tokens);

  struct Taken {
    BlockIds blocks = {};       // of the whole input, in the order of its tokens
    std::uint64_t hit_ids = 0;  // hash ids of the longest cached prefix
    std::uint64_t hit_tokens = 0;
  };
  // Takes blocks for a request. Returns nothing if the request needs more blocks than the pool has.
  std::optional<Taken> take(const TraceRequest& request);

 private:
  // A unit behind a prefix, or all tokens of a request that have no ids.
  struct Key {
    std::uint64_t prefix = 0;  // the number of the entry before this one; 0: the first unit
    std::uint64_t id = 0;
    std::uint32_t blocks = 0;  // a request's last unit may have fewer
    friend bool operator==(const Key&, const Key&) = default;
  };
  struct Hash {
    std::size_t operator()(const Key& key) const;
  };
  struct Entry {
    std::uint64_t number = 0;  // from 1 on, and unique among all entries
    BlockIds blocks = {};
    std::list<Key>::iterator place = {};  // in `used_`
  };
  bool makeRoom(std::uint64_t blocks, std::uint64_t keep);
  std::uint32_t blocksOf(const TraceRequest& request, std::uint64_t unit) const;
  std::vector<std::uint64_t> idsOf(const TraceRequest& request) const;
  std::vector<Entry*> longestPrefix(const TraceRequest& request,
                                    const std::vector<std::uint64_t>& ids);

  const std::uint32_t block_tokens_;
  const std::uint32_t unit_tokens_, unit_ids_;
  const std::uint64_t blocks_;
  BlockIds free_ = {};
  std::list<Key> used_;  // the most recently used first
  std::unordered_map<Key, Entry, Hash> entries_;
  std::uint64_t last_number_ = 0;
};

// The cache of decode. Each request has its own blocks until a later request needs room. The oldest
// request gives its blocks back first.
class DecodeCache {
 public:
  explicit DecodeCache(std::uint64_t blocks);

  struct Taken {
    BlockIds blocks = {};
    // The last request whose blocks this request reuses. That request's transfer must end first.
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
  std::list<Owner> owners_;          // the oldest first
  std::vector<std::uint64_t> last_;  // number of each block's last owner, plus 1; 0: no owner yet
};

}  // namespace viaduct::measure
