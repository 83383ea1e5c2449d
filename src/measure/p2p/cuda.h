// What `--cuda` can do here. Threads: any.
#pragma once

#include <viaduct/result.h>

namespace viaduct::measure::p2p {

// Whether buffers can lie on that GPU. The error says why not: no driver, the driver's own words,
// or that nothing built in moves a GPU's memory.
Status checkCuda(int gpu_id);

}  // namespace viaduct::measure::p2p
