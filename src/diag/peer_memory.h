// How RDMA devices may reach the memory of NVIDIA GPUs on a node. Threads: pure functions.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "diag/hardware.h"

namespace viaduct::diag {

struct GpuPeerMemory {
  std::string driver = {};         // the first line of /proc/driver/nvidia/version; empty: none
  bool open = false;               // the open kernel modules, which dma-buf needs
  std::string module = {};         // "nvidia_peermem"; empty: none is loaded
  std::optional<bool> new_kernel;  // whether it has dma-buf for RDMA (Linux 5.12)
  bool efa = false;                // all NICs are EFA and bring NVIDIA's peer memory themselves
  bool dmaBuf() const { return open && new_kernel.value_or(false); }
  bool any() const { return efa || !module.empty() || dmaBuf(); }
};
GpuPeerMemory peerMemory(const Node& node, const std::vector<RdmaNic>& nics);

// "580.95.05" of the driver's version line; empty: none.
std::string driverVersion(const std::string& line);

}  // namespace viaduct::diag
