// The parts of the topic `variables`. Each reports the variables that defeat RDMA on this node.
// Threads: pure functions.
#pragma once

#include <string>
#include <string_view>

#include "diag/findings.h"
#include "diag/pod_view.h"

namespace viaduct::diag {

struct VariableScene {
  const Node& node;
  PodView pod;
  Findings& findings;
  // `finding.what` continues the words "NAME=value". An empty code becomes "variables.<name>", and
  // an empty fix "unset NAME". The evidence starts with the variable and this pod's devices.
  void add(const std::string& name, Finding finding) const;
};

// Checks variables with one value that defeats RDMA or breaks transfers.
void checkSwitches(const VariableScene& scene);
// Checks NCCL_IB_HCA, the interfaces of the bootstrap, and GID indices.
void checkNcclDevices(const VariableScene& scene);
void checkGidIndices(const VariableScene& scene);
void checkInterfaceNames(const VariableScene& scene);
// Checks UCX_TLS and UCX_NET_DEVICES, with InfiniBand and RoCE devices.
void checkUcx(const VariableScene& scene);
// Checks that LD_LIBRARY_PATH leads to NCCL's plugin for EFA. The topic gpu checks the driver's
// libraries.
void checkLibraryPath(const VariableScene& scene);
// Checks variables that only process 1 of the container has.
void checkProcessOne(const VariableScene& scene);

// Whether a variable configures transfers: NCCL_*, UCX_*, FI_*, VIADUCT_FAULTS and similar.
bool isTransportVariable(std::string_view name);

}  // namespace viaduct::diag
