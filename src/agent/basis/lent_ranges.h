// The memory of an agent that its live leases lend. Leases for reading may share bytes. A lease for
// writing shares none. Threads: under the agent's lock.
#pragma once

#include <viaduct/blocks.h>
#include <viaduct/memory.h>

#include <cstddef>
#include <cstdint>
#include <map>
#include <optional>
#include <span>
#include <unordered_map>

namespace viaduct::agent {

class LentRanges {
 public:
  // Lends these ranges, as core::rangesOf() returns them. They stay in place until remove(). If a
  // shared byte forbids that, lends nothing and returns its address.
  std::optional<std::uint64_t> add(std::span<const Extent> ranges, MemoryAccess access);
  void remove(std::span<const Extent> ranges);
  bool empty() const { return parts_.empty() && readers_.empty(); }

  // The most ranges that readers_ has. A lease for writing, or one beyond this limit, divides them
  // all into parts. That takes up to some 90 ms: docs/measured/leases.md.
  static constexpr std::size_t kMostUndivided = std::size_t{1} << 18U;

 private:
  struct LentRange {
    std::uint64_t end = 0;
    std::uint32_t leases = 0;
    bool written = false;
  };
  using RangeMap = std::map<std::uint64_t, LentRange>;  // by first address; no two share a byte
  RangeMap::iterator firstBehind(std::uint64_t address);
  void cutAt(std::uint64_t address);
  void lend(const Extent& range, bool written);
  void divide();

  // Leases for reading cannot be in conflict with each other. Until a lease for writing comes, they
  // are only recorded here: the number of ranges by the pointer to the first.
  std::unordered_map<const Extent*, std::size_t> readers_;
  std::size_t undivided_ = 0;  // the ranges of readers_
  RangeMap parts_;             // of all leases; if there are parts, readers_ is empty
};

}  // namespace viaduct::agent
