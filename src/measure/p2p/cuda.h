// Checks whether `--cuda` works on this machine. Threads: any.
#pragma once

#include <viaduct/result.h>

namespace viaduct::measure::p2p {

// Always fails, because no backend of this version moves GPU memory. The error says whether the GPU
// could be used.
Status checkCuda(int gpu_id);

}  // namespace viaduct::measure::p2p
