// One point of a KV workload: requests of a model whose blocks lie at random places of two pools.
// docs/kv-bench.md defines it. Threads: plain values and pure functions.
#pragma once

#include <viaduct/kv.h>
#include <viaduct/result.h>

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "base/words.h"

namespace viaduct::measure {

inline constexpr base::Words<KvOrder, 2> kKvOrders{
    {{"nhd", KvOrder::kNhd}, {"hnd", KvOrder::kHnd}}};
inline constexpr base::Words<KvArrangement, 3> kKvArrangements{
    {{"apart", KvArrangement::kApart},
     {"together", KvArrangement::kTogether},
     {"rows", KvArrangement::kRows}}};

// The cache at one end. One rank of each end takes part.
struct KvEnd {
  std::uint32_t tp = 1, rank = 0;
  std::uint32_t block = 0;  // tokens; 0: the model's block size
  KvOrder order = KvOrder::kNhd;
  KvArrangement arrangement = KvArrangement::kApart;
  std::uint64_t pool = 0;   // blocks
  std::uint64_t bytes = 0;  // of the pool
  friend bool operator==(const KvEnd&, const KvEnd&) = default;
};

enum class KvSide : std::uint8_t { kSource, kDestination };

struct KvPoint {
  std::string model = {};
  std::uint32_t tokens = 0;    // of each request
  std::uint32_t requests = 1;  // requests that are posted together
  std::uint32_t sets = 4;      // sets of block tables, which bursts use in turn
  KvEnd source = {}, destination = {};
  bool bulk = false;  // each request is one block of equal bytes, to measure the wire's ceiling
  std::uint32_t trial = 0, trials = 1;
  std::uint64_t seed = 1;
  std::uint64_t request_bytes = 0;
  std::uint64_t pages = 0;  // of a request, at the end with more pages

  const KvEnd& end(KvSide side) const { return side == KvSide::kSource ? source : destination; }
  friend bool operator==(const KvPoint&, const KvPoint&) = default;
};

// Completes a point: sizes of the pools, ranks that share heads, bytes and pages. A pool has
// `slack` (at least 1) times the blocks of the requests of all sets. The error says why the two
// layouts cannot be mapped onto each other.
Result<KvPoint> completed(KvPoint point, double slack);
// Returns the `slack` that the benchmark CollectiveX uses for this number of requests.
double usualKvSlack(std::uint32_t requests);

// Returns the layout at one end, in a pool that starts at address `base`.
Result<KvLayout> layoutOf(const KvPoint& point, KvSide side, std::uint64_t base);

// The blocks of a request at both ends, by group, for KvReshard::select().
using KvRequestBlocks = std::vector<KvBlocks>;
// Returns the blocks of all requests; index: `set * requests + request`. Each end's blocks come
// from a permutation of its pool by a seed, so both members find the same tables without an
// exchange.
std::vector<KvRequestBlocks> tablesOf(const KvPoint& point);

// The two sides of a request's transfer: KvReshard::select(), or one piece of a bulk point.
class KvSides {
 public:
  // The pools start at these addresses.
  static Result<KvSides> make(const KvPoint& point, std::uint64_t source_base,
                              std::uint64_t destination_base);
  Result<KvSelections> of(std::uint64_t set, std::uint32_t request) const;

 private:
  KvPoint point_;
  KvLayout source_, destination_;
  std::uint64_t source_base_ = 0, destination_base_ = 0;
  std::vector<KvRequestBlocks> tables_;
};

// "Llama-3.1-8B, 8192 tokens, block 16 to 64, TP 4 to 8, hnd, apart"
std::string textOf(const KvPoint& point);

}  // namespace viaduct::measure
