// Measures from which block size on a copy engine is faster than the copy kernel. Threads: any; one
// at a time for a device.
#pragma once

#include <viaduct/result.h>

#include <memory>

#include "backends/cuda/copy_stream.h"
#include "cuda/context.h"

namespace viaduct::cuda {

// Measures blocks of 4 KiB to 1 MiB through the streams, in at most about 50 ms. A direction that
// the time does not suffice for gets the size of the ones before it.
Result<Sizes> calibrate(const std::shared_ptr<const Context>& context,
                        const std::array<std::unique_ptr<CopyStream>, kDirections>& streams);

}  // namespace viaduct::cuda
