// What a program in this pod can move data with: its RDMA devices, GPUs and interfaces. Threads:
// pure functions.
#pragma once

#include <cstddef>
#include <string>
#include <vector>

#include "diag/allocation.h"
#include "diag/node.h"

namespace viaduct::diag {

struct PodView {
  Allocation given = {};
  // Those of the given devices that have an active port: InfiniBand and RoCE, and EFA.
  std::vector<RdmaDevice> verbs = {}, efa = {};
  std::size_t gpus = 0;                      // of NVIDIA
  std::vector<std::string> interfaces = {};  // network devices
  std::string default_interface = {};        // of the default route; empty: there is none
  std::string product = {};                  // of the machine: "p5.48xlarge"
  bool pod = false;
  bool efaOnly() const { return !efa.empty() && verbs.empty(); }
};
PodView podView(const Node& node);

// The entry of a RoCE port that other hosts can reach: RoCE v2, best over IPv4. Null: there is
// none.
const Gid* routableGid(const RdmaPort& port);

}  // namespace viaduct::diag
