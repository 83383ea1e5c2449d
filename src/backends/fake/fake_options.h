// What the fake backend pretends, for tests: its rails, and lies that no other backend tells.
// VIADUCT_FAULTS injects faults. Threads: plain values.
#pragma once

#include <viaduct/result.h>

#include <cstdint>
#include <string_view>

namespace viaduct::fake {

// Wrong copies of each op that are reported as moved, for tests of programs that detect them.
enum class Lie : std::uint8_t {
  kNone,
  kCorrupt,  // some bytes in the middle are wrong
  kSwap,     // the two halves are exchanged
  kShift,    // all bytes are 8 too low
  kStale,    // nothing is copied
};

struct FakeOptions {
  std::uint32_t rails = 2;
  // The number of pretended NUMA nodes. Rail i is on node i mod `nodes`, and a pin on node slot mod
  // `nodes`.
  std::uint32_t nodes = 1;
  std::uint32_t exhaust = 0;  // this many links, from the first on, lack descriptors
  std::uint32_t far = 0;      // 1: also reaches other processes of this host
  std::uint32_t pose = 0;     // 1: claims to be RDMA
  Lie lie = Lie::kNone;
};

// Reads "rails=4,nodes=2,exhaust=1,far=1,pose=1,lie=stale".
Status parseOptions(std::string_view text, FakeOptions& into);

}  // namespace viaduct::fake
