// Which UCP contexts an agent opens, and whether it opens any. Threads: pure, but for asking UCX.
#pragma once

#include <viaduct/settings.h>

#include <string>
#include <vector>

#include "backends/ucx/context.h"
#include "move/fabric_backend.h"

namespace viaduct::ucx {

// kUnsupported: nobody has asked for UCX by name, and there is no RDMA device that would make it
// worth while.
Result<move::Fabric> choose(const Settings& settings);

// Of a version that nobody has asked for: it does not end the process where a peer does not answer
// (docs/gotchas/ucx.md).
bool fitUnasked(unsigned major, unsigned minor);
// What of UCX_TLS is ours to say, for the transports that there are.
std::string transportsFor(bool user_has_set, bool any_rdma);
// The device that `rail` names, of those there are: "mlx5_0" is "mlx5_0:1" too, and an address is
// the interface that has it. The error says what there is, and what is nearly that.
Result<std::string> deviceFor(const std::string& rail, const std::vector<Transport>& resources);

// Devices that become rails, one each, and those that could have and do not.
struct RailDevices {
  std::vector<std::string> devices = {};  // none: one rail, of all there is, as UCX likes
  std::vector<std::string> left_out = {};
};
// Where nothing is named: every RDMA device that is as near as any to this process's CPUs, unless
// the user has told UCX which. Files are read below `root`.
Result<RailDevices> railsFor(const std::vector<std::string>& named,
                             const std::vector<Transport>& resources, bool user_chose_devices,
                             const std::string& root = "/");

}  // namespace viaduct::ucx
