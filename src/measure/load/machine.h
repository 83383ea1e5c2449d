// What this machine has to have for a run. Threads: pure functions.
#pragma once

#include <viaduct/backend.h>
#include <viaduct/result.h>

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "measure/load/spec.h"

namespace viaduct::measure {

// Whether the memory of all members (`local`), or of one of them, is there: said before any of it
// is taken, with what would fit.
Status memorySuffices(const Spec& spec, bool local, const std::string& root = "/");
// Names of interfaces, or addresses of them, or RDMA devices ("mlx5_0", "mlx5_0:1").
Status devicesExist(const std::vector<std::string>& names, const std::string& root = "/");
// Where agents of one host listen for each other: loopback, and the addresses of the rails that are
// named, which nothing reaches that is bound to another device.
std::vector<std::string> listenHere(const std::vector<std::string>& rails,
                                    const std::string& root = "/");
// Whether rows over each open backend can take a path as `require` demands it, by what the backends
// can do: said before any row is measured.
Status requirementMet(const std::vector<BackendInfo>& backends, std::string_view require);
// Why there is no memory of a GPU to be had.
Error noDeviceMemory();
// What "cold" means here: four times the last-level cache.
std::uint64_t coldBytes();

}  // namespace viaduct::measure
