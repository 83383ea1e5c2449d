// Decides which member measures which copies of GPUs. Threads: pure functions.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "base/fields.h"
#include "measure/proof/observation.h"
#include "measure/workload/layout.h"

namespace viaduct::measure {

// A member's host, and the GPUs of its devices.
struct GpuMember {
  std::string boot_id = {};
  std::vector<proof::GpuPlace> gpus = {};
  friend bool operator==(const GpuMember&, const GpuMember&) = default;
};
auto fields(base::Is<GpuMember> auto& m) { return std::tie(m.boot_id, m.gpus); }

struct GpuCopy {
  std::string from = {}, to = {};  // ids of GPUs; empty: host memory
  friend bool operator==(const GpuCopy&, const GpuCopy&) = default;
};
// The copies that a member measures. One member of each host measures at a time, because GPUs share
// the memory and the PCIe links of their host.
struct GpuTurn {
  std::uint32_t turn = 0;
  std::vector<GpuCopy> copies = {};
};
// Returns the turns by rank. Each copy on a host is measured once, by a member whose devices have
// both GPUs. If no member has both GPUs of a copy, the copy is left out.
std::vector<GpuTurn> gpuTurns(const Layout& layout, std::span<const GpuMember> by_rank);

}  // namespace viaduct::measure
