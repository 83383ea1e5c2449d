// Finds how RDMA devices may reach the memory of a node's NVIDIA GPUs. Threads: pure functions.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "diag/hardware.h"

namespace viaduct::diag {

struct GpuPeerMemory {
  std::string driver = {};         // the first line of /proc/driver/nvidia/version; empty: none
  bool open = false;               // the open kernel modules are loaded, which dma-buf needs
  std::string module = {};         // "nvidia_peermem"; empty: none is loaded
  std::optional<bool> new_kernel;  // whether the kernel has dma-buf for RDMA (Linux 5.12)
  bool efa = false;                // all NICs are EFA, whose driver has its own peer memory
  bool dmaBuf() const { return open && new_kernel.value_or(false); }
  bool any() const { return efa || !module.empty() || dmaBuf(); }
};
GpuPeerMemory peerMemory(const Node& node, const std::vector<RdmaDevice>& nics);

// The version in the driver's version line, "580.95.05"; empty: none.
std::string driverVersion(const std::string& line);

}  // namespace viaduct::diag
