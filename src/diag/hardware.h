// The RDMA devices and GPUs whose hardware the checks examine. Threads: pure functions.
#pragma once

#include <span>
#include <string>
#include <vector>

#include "diag/node.h"

namespace viaduct::diag {

// The devices that this pod got, or all of the node if these are unknown. Software devices such as
// siw and rxe, which have no PCI function, are left out.
std::vector<RdmaDevice> rdmaNics(const Node& node);
// NVIDIA GPUs by PCI address, without those handed to a virtual machine.
std::vector<PciFunction> nvidiaGpus(const Tree& tree);
// The number of GPUs that the driver shows, or, without a driver, of all on PCI.
std::size_t countNvidiaGpus(const Tree& tree);

inline constexpr auto kDriverVersion = "/proc/driver/nvidia/version";
// The driver's text about a GPU: "Model: NVIDIA H100 ...". Empty: the driver does not show the GPU.
std::string driverInformation(const Tree& tree, const PciFunction& gpu);
// The NVSwitches that this system sees. The firmware of some systems hides them.
std::size_t countNvSwitches(const Tree& tree);

// Tests for presence, which are cheaper than the lists.
bool hasRdma(const Tree& tree);
bool hasNvidiaDriver(const Tree& tree);

// "a, b and c". After `most` names, the rest is a number.
std::string listed(std::span<const std::string> names, std::size_t most = 16);

}  // namespace viaduct::diag
