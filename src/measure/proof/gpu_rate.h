// Measures how fast the driver copies between memory of GPUs and pinned host memory, which is the
// ceiling of transfers of GPU memory within a host. Threads: any.
#pragma once

#include <cstdint>

#include "measure/proof/observation.h"
#include "measure/workload/mirror.h"

namespace viaduct::measure::proof {

GpuPlace placeOf(std::uint32_t device, const Gpu& gpu);

// Copies buffers of several sizes with plain cuMemcpyAsync, and takes the best of several passes,
// because a ceiling is the possible rate. Null: pinned host memory. Takes some tens of
// milliseconds, and 512 MiB of a GPU at most.
GpuRate measureGpuRate(const Gpu& from, const Gpu& to);

}  // namespace viaduct::measure::proof
