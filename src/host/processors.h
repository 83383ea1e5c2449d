// How much of the processors has been used, by this machine and by this process. Threads: pure
// functions.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

namespace viaduct::host {

struct ProcessorUse {
  double seconds = 0;       // of all processors together since boot, by whomever, a hypervisor too
  std::uint32_t count = 0;  // processors
};

// Nothing where the kernel does not say. In steps of 10 ms a processor; files are read below
// `root`.
std::optional<ProcessorUse> processorUse(const std::string& root = "/");

// What this process has used, user and system, in seconds.
double ownProcessorSeconds();

}  // namespace viaduct::host
