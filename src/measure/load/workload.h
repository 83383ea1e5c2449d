// What is to be measured: one row of a benchmark, and a sweep of them. Threads: plain values.
#pragma once

#include <viaduct/result.h>
#include <viaduct/transfer.h>

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "base/bytes.h"

namespace viaduct::measure {

enum class MemoryChoice : std::uint8_t {
  kAllocate,  // Agent::allocate: peers on this host can map it
  kMalloc,    // plain private memory, pinned
};
const char* memoryChoiceName(MemoryChoice choice);

// One transfer of `batch` blocks, posted again and again, one at a time.
struct Workload {
  std::string backend = {};
  OpKind op = OpKind::kWrite;
  std::uint64_t block_bytes = 0;
  std::uint32_t batch = 1;
  std::uint64_t iterations = 0;  // 0: as many as fit in half a second or so
  MemoryChoice memory = MemoryChoice::kAllocate;
  std::uint64_t seed = 1;  // of contents and order

  std::uint64_t bytes() const { return block_bytes * batch; }
  friend bool operator==(const Workload&, const Workload&) = default;
};

void encode(base::Writer& to, const Workload& workload);
// Nothing when the bytes make no workload that check() would let pass.
Result<Workload> decodeWorkload(base::Reader& from);

// Which workloads a user asked for.
struct Sweep {
  std::vector<std::string> backends = {"local", "tcp"};
  std::vector<std::uint64_t> block_sizes = {};  // empty: 4 KiB to 64 MiB, by fours
  std::uint32_t batch = 0;                      // 0: 64, or fewer: 64 MiB a transfer at most
  std::uint64_t iterations = 0;
  OpKind op = OpKind::kWrite;
  MemoryChoice memory = MemoryChoice::kAllocate;
};
// Every backend with every size; an error names what cannot be.
Result<std::vector<Workload>> workloads(const Sweep& sweep);

// In which order the blocks of one side are taken: block k of the transfer lies at place order[k].
// Each side has its own order, so that nothing but the blocks themselves moves as one piece.
enum class Role : std::uint8_t { kInitiator, kTarget };
std::vector<std::uint32_t> blockOrder(const Workload& workload, Role role);

}  // namespace viaduct::measure
