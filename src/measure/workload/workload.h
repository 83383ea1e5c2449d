// The blocks that one row moves. Threads: plain values and pure functions.
#pragma once

#include <viaduct/result.h>
#include <viaduct/transfer.h>

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/words.h"
#include "measure/workload/kv_point.h"
#include "measure/workload/swap.h"
#include "measure/workload/trace.h"

namespace viaduct::measure {

enum class MemoryChoice : std::uint8_t {
  kAllocate,  // Agent::allocate: peers on this host can map it
  kMalloc,    // plain private memory, pinned
};
inline constexpr base::Words<MemoryChoice, 2> kMemoryChoices{
    {{"allocate", MemoryChoice::kAllocate}, {"malloc", MemoryChoice::kMalloc}}};
constexpr const char* memoryChoiceName(MemoryChoice choice) {
  return base::wordOf(kMemoryChoices, choice);
}

// A trace whose requests start at the trace's times.
struct KvTrace {
  std::string name = {};  // the name of the trace's file
  std::shared_ptr<const Trace> requests = {};
  double speed = 1;         // divides the times of the trace
  double prefill_rate = 0;  // tokens a second; 0: unknown
  friend bool operator==(const KvTrace& a, const KvTrace& b) {
    const auto same = [](const Trace* one, const Trace* other) {
      return one == other || (one != nullptr && other != nullptr && *one == *other);
    };
    return a.name == b.name && a.speed == b.speed && a.prefill_rate == b.prefill_rate &&
           same(a.requests.get(), b.requests.get());
  }
};

// One row of a benchmark: each stream moves transfers of `batch` blocks.
struct Workload {
  std::string backend = {};
  OpKind op = OpKind::kWrite;
  std::uint64_t block_bytes = 0;
  std::uint32_t batch = 1;
  std::uint64_t warm_iterations = 0;  // of each stream; 0: by time
  std::uint64_t iterations = 0;       // of each stream; 0: by time
  // A KV workload: a block is a request, and each request is a transfer of its own.
  std::optional<KvPoint> kv = {};
  // If set, the row replays this trace instead of bursts. `block_bytes` is then the mean size of a
  // request.
  std::optional<KvTrace> trace = {};
  // In a row of Spec::pipeline: the index of the Case, which says which stages move.
  std::optional<std::uint32_t> stages = {};
  // Copies of `batch` blocks between host memory and a GPU, as engines swap their caches.
  std::optional<swap::Copies> swap = {};

  std::uint32_t transfers() const { return kv ? batch : 1; }  // that are posted together
  std::uint64_t bytes() const { return block_bytes * batch; }
  friend bool operator==(const Workload&, const Workload&) = default;
};
// True if the rounds of both rows take turns, so that both rows have the same conditions. `next` is
// the row after `row`.
bool roundsTakeTurns(const Workload& row, const Workload& next);
// Fails if the row cannot be measured. The error names the reason.
Status check(const Workload& workload);

// Splits `require` at commas, and trims the words.
std::vector<std::string_view> requirementWords(std::string_view require);
// The requirement that a row's path is proven. It is checked for the whole row, and no transfer can
// satisfy it.
inline constexpr std::string_view kProvenPath = "proven";
// Returns the requirement without kProvenPath, for a transfer.
std::string requireOfTransfer(std::string_view require);
// Returns the requirement for a transfer of this row, which also names the row's backend.
std::string requireOf(const Workload& row, std::string_view require);

// The default block sizes: 4 KiB to 64 MiB in steps of four. The default batch is 64 blocks or
// fewer.
std::vector<std::uint64_t> usualBlockSizes();
std::uint32_t usualBatch(std::uint64_t block_bytes);

enum class Role : std::uint8_t { kInitiator, kTarget };
constexpr Role other(Role role) {
  return role == Role::kInitiator ? Role::kTarget : Role::kInitiator;
}
// Returns the order of one side's blocks: block k of a transfer lies at index order[k]. The sides
// have different orders, so that few blocks merge into one copy.
std::vector<std::uint32_t> blockOrder(std::uint32_t batch, std::uint64_t seed, Role role);

}  // namespace viaduct::measure
