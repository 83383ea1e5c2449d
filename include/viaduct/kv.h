// Layouts of KV caches, and plans that move blocks from one layout to another: docs/kv.md. Threads:
// plain values; const calls from any.
#pragma once

#include <viaduct/blocks.h>
#include <viaduct/result.h>

#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace viaduct {

// The caches of some layers that are alike. An entry is one head of one token: `head_size`
// elements.
struct KvCache {
  std::string name = "kv";                 // for errors
  std::vector<std::uint32_t> layers = {};  // their numbers in the model, ascending
  std::uint32_t tensors = 2;               // in each layer: K and V; 1: a latent row, as in MLA
  std::uint32_t kv_heads = 1;              // of the model; tensor-parallel ranks divide them
  std::uint32_t head_size = 0;             // elements
  std::uint32_t element_bytes = 2;
  std::uint32_t entry_tokens = 1;  // tokens that share one entry
  friend bool operator==(const KvCache&, const KvCache&) = default;
};

// Block b of one tensor of one layer is a page, which starts at address + b * stride.
struct KvPlace {
  std::uint64_t address = 0, stride = 0;
  friend bool operator==(const KvPlace&, const KvPlace&) = default;
};

// Caches that share one block table.
struct KvGroup {
  std::vector<KvCache> caches = {};
  std::uint32_t block_tokens = 16;
  std::uint32_t window = 0;          // tokens that attention looks back; 0: all
  std::uint64_t blocks = 0;          // the number of blocks in the pool
  std::vector<KvPlace> places = {};  // by cache, then by layer, then by tensor
};

// The order of the entries in a page.
enum class KvOrder : std::uint8_t {
  kNhd,  // token after token, each with all heads of the rank
  kHnd,  // head after head, each with all tokens of the block
};

// The KV cache of one tensor-parallel rank. If there are more ranks than heads, several ranks have
// the same head.
struct KvLayout {
  std::vector<KvGroup> groups = {};
  KvOrder order = KvOrder::kNhd;
  std::uint32_t tp = 1, rank = 0;
  std::uint32_t page_align = 1;  // the size of a page is a multiple of it
};

// Checks all fields. The error names the field, the reason and a value that is possible.
Status checkKvLayout(const KvLayout& layout);
// The bytes of a page of this cache on one rank. The fields are as checkKvLayout() wants them.
std::uint64_t kvPageBytes(const KvLayout& layout, const KvGroup& group, const KvCache& cache);

// The blocks that a request of so many tokens has in this group. A window covers its tokens and one
// more block, because it rarely ends where a block ends.
std::uint64_t kvBlocksOf(const KvGroup& group, std::uint64_t tokens);

// The usual ways to place pages in one piece of memory.
enum class KvArrangement : std::uint8_t {
  kApart,     // each tensor of each layer has a pool of its own
  kTogether,  // each layer has a pool, with the pages of K and V of a block side by side
  kRows,      // a block is one row with the pages of all layers; all groups share the rows
};
// Fills in `blocks` and `places` of all groups, for a pool that starts at `base`.
Result<KvLayout> arrangeKv(KvLayout layout, KvArrangement arrangement, std::uint64_t base,
                           std::uint64_t blocks);
// The memory from the first page to the end of the last one.
Extent kvExtent(const KvLayout& layout);

// The ranks of the source from which this rank of the destination takes its heads, in ascending
// order. It takes each head once. The rank of `source` does not matter, nor do places.
Result<std::vector<std::uint32_t>> kvSourceRanks(const KvLayout& source,
                                                 const KvLayout& destination);

// Blocks of one group that have the same tokens at both ends, in the order of the tokens.
struct KvBlocks {
  Indices source = {}, destination = {};
  // The first token to move, at the start of a block of one end. The first block of each end has
  // this token.
  std::uint64_t first_token = 0;
};
// The two sides of Agent::plan. A read has the destination here, a write has the source here.
struct KvSelections {
  Selection source = {}, destination = {};
};

// A plan between two layouts. Making it costs time and memory for each page of a block, independent
// of the number of blocks. A copy shares the plan.
class KvReshard {
 public:
  // Both layouts have the same groups and caches. Their layers may differ, as in pipeline
  // parallelism: the layers that both have are moved. An error names the field that keeps the
  // layouts from being mapped onto each other.
  static Result<KvReshard> plan(const KvLayout& source, const KvLayout& destination);

  // Takes these blocks, for each group in order. A group with no blocks at either end moves
  // nothing. Neighbouring blocks stay one run. The cost follows the pieces: bytes that are
  // contiguous at both ends, within blocks.
  Result<KvSelections> select(std::span<const KvBlocks> groups) const;

 private:
  struct Table;
  std::shared_ptr<const Table> table_;
};

}  // namespace viaduct
