// A small KV cache that two processes of a test lay out alike. Threads: pure functions.
#pragma once

#include <viaduct/kv.h>

#include <array>
#include <cstdint>

namespace viaduct::testing {

// Eight layers of two blocks: 64 KiB from this address on.
inline KvLayout eightLayers(std::uint64_t address) {
  return *arrangeKv(
      {.groups = {{.caches = {{.layers = {0, 1, 2, 3, 4, 5, 6, 7}, .head_size = 64}}}}},
      KvArrangement::kApart, address, 2);
}

// The indices of both blocks.
inline const std::array<Indices, 1> kTwoBlocks{{{0, 1}}};

}  // namespace viaduct::testing
