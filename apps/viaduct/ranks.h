// Finds the rank that a launcher gave to this process. Threads: reads the environment.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

namespace viaduct::app {

// Reads JOB_COMPLETION_INDEX, the ordinal of a StatefulSet's pod ("decode-3"), SLURM_PROCID or
// OMPI_COMM_WORLD_RANK. Returns nothing if none is set: any rank will do.
std::optional<std::uint32_t> rankFromEnvironment();
// Returns the number after the last dash of a pod's name if the pod belongs to a StatefulSet.
std::optional<std::uint32_t> ordinalOf(const std::string& host_name);

}  // namespace viaduct::app
