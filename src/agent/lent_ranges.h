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

namespace viaduct::agent {

class LentRanges {
 public:
  // Lends these ranges, as core::rangesOf() returns them. If a shared byte forbids that, lends
  // nothing and returns its address.
  std::optional<std::uint64_t> add(std::span<const Extent> ranges, MemoryAccess access);
  void remove(std::span<const Extent> ranges);
  std::size_t parts() const { return parts_.size(); }

 private:
  struct Part {
    std::uint64_t end = 0;
    std::uint32_t leases = 0;
    bool written = false;
  };
  using Parts = std::map<std::uint64_t, Part>;  // by the first address; they share no byte
  Parts::iterator firstBehind(std::uint64_t address);
  void cutAt(std::uint64_t address);
  void lend(const Extent& range, bool written);

  Parts parts_;
};

}  // namespace viaduct::agent
