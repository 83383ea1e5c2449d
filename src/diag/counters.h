// Error and congestion counters of RDMA devices, interfaces and PCIe links. Threads: pure
// functions.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "diag/node.h"

namespace viaduct::diag {

// The files to read twice for their growth: files with a number, whose growth a check judges. A
// driver refreshes most of them only every `lifespan` ms (10 by default).
std::vector<std::string> counterPaths(const Tree& tree);
// The number in a file of counterPaths(): the whole file, or the total of one kind of PCIe errors.
std::optional<std::uint64_t> counterValue(const Tree& tree, const std::string& path);

}  // namespace viaduct::diag
