// Which member of its group a process is, as those that start it say. Threads: reads the
// environment.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

namespace viaduct::app {

// JOB_COMPLETION_INDEX, the ordinal of a StatefulSet's pod ("decode-3"), SLURM_PROCID,
// OMPI_COMM_WORLD_RANK; nothing: any rank will do.
std::optional<std::uint32_t> rankFromEnvironment();
// The number behind the last dash of a pod's name, when the pod belongs to a StatefulSet.
std::optional<std::uint32_t> ordinalOf(const std::string& host_name);

}  // namespace viaduct::app
