// Checks this machine's resources before a run. Threads: pure functions.
#pragma once

#include <viaduct/backend.h>
#include <viaduct/result.h>

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "host/tree.h"
#include "measure/workload/spec.h"

namespace viaduct::measure {

// Returns the memory that programs of this host may still take; 0: unknown.
std::uint64_t memoryOfThisHost();
// Checks that this host has memory for all members (`local`), or for the largest one. The error
// says how much fits.
Status memorySuffices(const Spec& spec, bool local, const host::Tree& tree = {});
// Checks that each name is an interface, an address of one, or an RDMA device ("mlx5_0",
// "mlx5_0:1").
Status devicesExist(const std::vector<std::string>& names, const host::Tree& tree = {});
// Returns the addresses on which agents of one host listen: loopback, and the addresses of the
// named rails. A socket that is bound to one device does not reach the addresses of another.
std::vector<std::string> listenHere(const std::vector<std::string>& rails,
                                    const host::Tree& tree = {});
// Checks before the run whether each open backend can satisfy `require`, as far as its facts tell.
Status requirementMet(const std::vector<BackendInfo>& backends, std::string_view require);
// Returns the working set of --cold: four times the largest cache, but at least 64 MiB.
std::uint64_t coldBytes();

}  // namespace viaduct::measure
