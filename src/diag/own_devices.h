// The RDMA devices whose faults concern this process, and texts about them. Threads: pure
// functions.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "diag/node.h"

namespace viaduct::diag {

struct OwnDevices {
  // The devices that the pod got; all of the node if that is unknown.
  std::vector<RdmaDevice> devices = {};
  // Devices with a name that no kernel gives, in printable form.
  std::vector<std::string> odd_names = {};
  bool given = false;    // the device plugin names them
  bool certain = false;  // the device plugin or the container's device files name them
  bool pod = false;
};
OwnDevices ownDevices(const Node& node);

// Whether the port speaks RoCE. iWARP's link layer is Ethernet as well.
bool isRoce(const Tree& tree, const RdmaDevice& device, const RdmaPort& port);

// The device's name for NVIDIA's firmware tools, after -d: its PCI address, or its RDMA name if the
// address is unknown.
std::string toolName(const RdmaDevice& device);

// The network device of a port in this network namespace; empty: there is none.
std::string interfaceOf(const Tree& tree, const RdmaDevice& device, const RdmaPort& port);

// Whether the kernel shows that a network device has no link.
bool isInterfaceDown(const Tree& tree, const std::string& interface);

// "mlx5_0, mlx5_1". A long list is shortened: "mlx5_0, mlx5_1, ... mlx5_31 (32 devices)".
std::string shortList(const std::vector<std::string>& names, std::string_view noun);
// Joins names with a verb: "A is", "A, B are".
std::string withVerb(const std::vector<std::string>& names, std::string_view one,
                     std::string_view many);

}  // namespace viaduct::diag
