// Measures from which block size on a copy engine is faster than the copy kernel. Threads: any; one
// at a time for a device.
#pragma once

#include <viaduct/result.h>

#include <memory>

#include "backends/cuda/copy_stream.h"
#include "cuda/context.h"

namespace viaduct::cuda {

// Measures blocks from 4 KiB to 1 MiB over the bus, and to 16 MiB within the GPU, through the
// streams. Takes about 50 ms at most. A direction whose measurement is cut short gets the first
// size that was not measured.
Result<Sizes> calibrate(const std::shared_ptr<const Context>& context,
                        const std::array<std::unique_ptr<CopyStream>, kDirections>& streams);

}  // namespace viaduct::cuda
