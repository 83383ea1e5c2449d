// Checks whether `--cuda` works on this machine. Threads: any.
#pragma once

#include <viaduct/result.h>

namespace viaduct::measure::p2p {

// Fails if buffers cannot lie in that GPU's memory: no driver, an error of the driver, or no
// backend that moves GPU memory.
Status checkCuda(int gpu_id);

}  // namespace viaduct::measure::p2p
