// The devices with which a program in this pod can move data: RDMA devices, GPUs and interfaces.
// Threads: pure functions.
#pragma once

#include <cstddef>
#include <string>
#include <vector>

#include "diag/allocation.h"
#include "diag/node.h"

namespace viaduct::diag {

struct PodView {
  Allocation given = {};
  // The given devices with an active port: InfiniBand and RoCE, and EFA.
  std::vector<RdmaDevice> verbs = {}, efa = {};
  // Active devices, such as for storage or management: in another network than the fastest device,
  // less than half as fast, or beside EFA devices. Empty if the device plugin names the devices.
  std::vector<RdmaDevice> aside = {};
  std::size_t gpus = 0;                      // NVIDIA GPUs
  std::vector<std::string> interfaces = {};  // network devices
  std::string default_interface = {};        // of the default route; empty: there is none
  std::string vendor = {}, product = {};     // of the machine: "Amazon EC2", "p5.48xlarge"
  bool pod = false;
  bool efaOnly() const { return !efa.empty() && verbs.empty(); }
};
PodView podView(const Node& node);

// The active ports of devices: "mlx5_6:1,mlx5_7:1". UCX needs the number of each port; NCCL needs
// none for a device that has only one.
enum class PortNames : bool { kWhereSeveral, kAll };
std::string activePorts(const std::vector<RdmaDevice>& devices, PortNames names);

// The GID of a RoCE port that other hosts can reach: RoCE v2, preferably over IPv4. Null: none.
const Gid* routableGid(const RdmaPort& port);

}  // namespace viaduct::diag
