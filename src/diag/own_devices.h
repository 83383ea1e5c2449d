// The RDMA devices whose faults concern the process at hand, and words about them. Threads: pure
// functions.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "diag/node.h"
#include "diag/rdma_devices.h"

namespace viaduct::diag {

struct OwnDevices {
  // Those that the pod was given; all of the node where nothing says so.
  std::vector<RdmaDevice> devices = {};
  // Devices of a name that no kernel gives. Printable.
  std::vector<std::string> odd_names = {};
  bool given = false;    // the device plugin names them
  bool certain = false;  // the device plugin or the container's device files name them
  bool pod = false;
};
OwnDevices ownDevices(const Node& node);

// Whether the port speaks RoCE. The link layer of iWARP is Ethernet too.
bool isRoce(const Tree& tree, const RdmaDevice& device, const RdmaPortState& port);

// What NVIDIA's firmware tools take after -d: the PCI address, or the name where there is none.
std::string toolName(const RdmaDevice& device);

// The network device of a port, where it is in this network namespace; empty: none.
std::string interfaceOf(const Tree& tree, const RdmaDevice& device, const RdmaPortState& port);

// Whether a network device has no link, as far as the kernel tells.
bool isInterfaceDown(const Tree& tree, const std::string& interface);

// "mlx5_0, mlx5_1". A long list is cut: "mlx5_0, mlx5_1, ... mlx5_31 (32 devices)".
std::string shortList(const std::vector<std::string>& names, std::string_view noun);
// "A is", "A, B are".
std::string withVerb(const std::vector<std::string>& names, std::string_view one,
                     std::string_view many);

}  // namespace viaduct::diag
