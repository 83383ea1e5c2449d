// The content of a KvReshard. Threads: plain values.
#pragma once

#include <viaduct/kv.h>

#include <cstddef>
#include <cstdint>
#include <vector>

namespace viaduct::kv {

// The pieces of a page at one end. They lie `step` apart. Both ends have the same pieces of a token
// range, in the same order, because pieces ascend with their tokens.
struct Page {
  std::uint64_t block_stride = 0;  // from the page of one block to that of the next
  std::uint64_t step = 0;
  std::uint64_t pieces = 0;
  friend bool operator==(const Page&, const Page&) = default;
};

// How pages are cut into pieces of `bytes`, each contiguous at both ends.
struct Cut {
  Page source = {}, destination = {};
  std::uint64_t bytes = 0;
  friend bool operator==(const Cut&, const Cut&) = default;
};

// The first pieces of block 0, at both ends.
struct Origin {
  std::uint64_t source = 0, destination = 0;
};

// All pages that are cut in one way.
struct Part {
  Cut cut = {};
  std::vector<Origin> origins = {};
};

// The blocks of one end.
struct Pool {
  std::uint32_t block_tokens = 0;
  std::uint64_t blocks = 0;
};

struct GroupPlan {
  Pool source = {}, destination = {};
  std::uint32_t chunk_tokens = 0;  // the most tokens that divide the blocks of both ends
  std::vector<Part> parts = {};
};

}  // namespace viaduct::kv

namespace viaduct {

struct KvReshard::Table {
  std::vector<kv::GroupPlan> groups = {};
};

}  // namespace viaduct
