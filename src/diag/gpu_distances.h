// The distances of a node's GPUs to each other and to its NICs. Threads: pure functions, and
// findings one at a time.
#pragma once

#include <vector>

#include "diag/findings.h"
#include "diag/hardware.h"

namespace viaduct::diag {

// Whether the GPU has NVLink to GPUs of other nodes, as only GPUs with Grace have.
bool sharesNvlink(const Tree& tree, const PciFunction& gpu);

// Whether PCIe is the only visible way between the GPUs. False for a single GPU.
bool meetOnPcie(const Tree& tree, const std::vector<PciFunction>& gpus);

void checkGpuPairs(const Tree& tree, const std::vector<PciFunction>& gpus, Findings& findings);
void checkNicDistances(const Tree& tree, const std::vector<PciFunction>& gpus,
                       const std::vector<RdmaDevice>& nics, Findings& findings);

}  // namespace viaduct::diag
