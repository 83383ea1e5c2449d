// Chooses the UCP contexts that an agent opens, or decides not to open ucx. Threads: pure, apart
// from calls of UCX.
#pragma once

#include <viaduct/settings.h>

#include <cstdint>
#include <string>
#include <vector>

#include "backends/ucx/context.h"
#include "move/fabric_backend.h"

namespace viaduct::ucx {

// kUnsupported: the user has not named ucx, and the host has no RDMA device or UCX is not
// fitUnasked().
Result<move::Fabric> choose(const Settings& settings);

// Whether a version of UCX may be opened although the user has not named ucx. Older versions may
// end the process if a peer does not answer (docs/gotchas/ucx.md).
bool fitUnasked(unsigned major, unsigned minor);
// Our value of UCX_TLS; empty if the user has set it.
std::string transportsFor(bool user_has_set, bool any_rdma);
// The device that `rail` names. "mlx5_0" also names "mlx5_0:1", and an address names its interface.
// The error lists the devices, and proposes a similar name.
Result<std::string> deviceFor(const std::string& rail, const std::vector<Transport>& resources);

// The reason why memory of GPUs is staged, for a UCX that can reach these kinds of memory.
std::string whyGpuIsStaged(std::uint64_t memory_types);

// The devices that become rails, one each, and the devices that were left out.
struct RailDevices {
  std::vector<std::string> devices = {};  // empty: one rail, for which UCX chooses devices
  std::vector<std::string> left_out = {};
};
// Chooses the rails. If the user has named none, these are the RDMA devices nearest to this
// process's CPUs, unless the user has set UCX_NET_DEVICES.
Result<RailDevices> railsFor(const std::vector<std::string>& named,
                             const std::vector<Transport>& resources, bool user_chose_devices,
                             const host::Tree& tree = {});

}  // namespace viaduct::ucx
