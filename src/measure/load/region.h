// One side's blocks of a workload: memory, its Pin, and the contents that are moved. Threads: one
// at a time.
#pragma once

#include <viaduct/agent.h>

#include <cstddef>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "measure/load/pattern.h"
#include "measure/load/workload.h"

namespace viaduct::measure {

struct Unmap {
  std::size_t bytes = 0;
  void operator()(std::byte* at) const;
};
using Mapping = std::unique_ptr<std::byte, Unmap>;

class Region {
 public:
  // `label`: what the peer finds the Pin by.
  static Result<Region> make(Agent& agent, const Workload& workload, Role role,
                             const std::string& label);

  // Block k of the transfer gets, or has to have, the pattern's block k.
  void fill(std::uint64_t epoch);
  std::optional<Mismatch> verify(std::uint64_t epoch) const;

  Selection selection() const;
  std::span<std::byte> block(std::uint64_t k) const;  // of the transfer
  Status release() { return pin_.release(); }

 private:
  Region(const Workload& workload, Role role, Mapping own, Pin pin);
  Pattern pattern(std::uint64_t epoch) const;

  Workload workload_;
  std::vector<std::uint32_t> order_;
  Mapping own_;  // for MemoryChoice::kMalloc; outlives the Pin
  Pin pin_;
};

// Blocks of `workload` in memory that starts at `base`, as that side takes them.
Selection selectionAt(const Workload& workload, Role role, std::uint64_t base);

}  // namespace viaduct::measure
