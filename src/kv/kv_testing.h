// Small layouts, for tests. Threads: pure functions.
#pragma once

#include <viaduct/kv.h>

#include <cstdint>
#include <numeric>
#include <utility>
#include <vector>

namespace viaduct::kv {

inline std::vector<std::uint32_t> layersUpTo(std::uint32_t count, std::uint32_t first = 0) {
  std::vector<std::uint32_t> out(count);
  std::iota(out.begin(), out.end(), first);
  return out;
}

// One group with one cache, without places.
inline KvLayout layoutOf(KvCache cache, std::uint32_t block_tokens, KvOrder order = KvOrder::kNhd) {
  return {.groups = {{.caches = {std::move(cache)}, .block_tokens = block_tokens}}, .order = order};
}

// The cache of Llama-3.1-8B.
inline KvCache llama() { return {.layers = layersUpTo(32), .kv_heads = 8, .head_size = 128}; }

}  // namespace viaduct::kv
