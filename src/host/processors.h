// The processor time that this machine and this process have used. Threads: pure functions.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "host/tree.h"

namespace viaduct::host {

struct ProcessorUse {
  double seconds = 0;       // busy time of all processors since boot, with the hypervisor's share
  double idle = 0;          // of all processors since boot
  std::uint32_t count = 0;  // processors
};

// Returns nothing if the kernel does not say. The resolution is 10 ms per processor.
std::optional<ProcessorUse> processorUse(const Tree& tree = {});

// The seconds that one processor was busy since boot.
struct ProcessorBusy {
  std::uint32_t number = 0;
  double seconds = 0;
};
std::vector<ProcessorBusy> processorsBusy(const Tree& tree = {});

// The seconds that this process has used, user and system.
double ownProcessorSeconds();

}  // namespace viaduct::host
