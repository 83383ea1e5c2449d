// The RDMA devices and GPUs that the checks of a node's hardware look at. Threads: pure functions.
#pragma once

#include <span>
#include <string>
#include <vector>

#include "diag/node.h"
#include "diag/pci.h"
#include "diag/rdma_devices.h"

namespace viaduct::diag {

// An RDMA device with its PCI function.
struct RdmaNic {
  RdmaDevice device;
  PciFunction function;
  double gigabits() const;  // of all its active ports; 0: none is active
};

// Those that this pod was given, or all of the node. Devices without a PCI function, as siw and
// rxe, are left out.
std::vector<RdmaNic> rdmaNics(const Node& node);
// NVIDIA's, by PCI address, without those that were handed to a virtual machine.
std::vector<PciFunction> nvidiaGpus(const Tree& tree);

// Cheaper than the lists.
bool hasRdma(const Tree& tree);
bool hasNvidiaDriver(const Tree& tree);

// "a, b and c"; of more than `most` the rest is a number.
std::string listed(std::span<const std::string> names, std::size_t most = 16);

}  // namespace viaduct::diag
