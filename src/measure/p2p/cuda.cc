#include "measure/p2p/cuda.h"

#include <fmt/format.h>

#include "base/sizes.h"
#include "host/gpu.h"

namespace viaduct::measure::p2p {

Status checkCuda(int gpu_id) {
  auto gpu = host::findGpu(gpu_id);
  if (!gpu) {
    Error error = std::move(gpu).error();
    error.operation = "--cuda: " + error.operation;
    return error;
  }
  return Error{.code = Code::kUnsupported,
               .operation = "--cuda",
               .detail = fmt::format("GPU {} ({}, {}) is usable, but no backend built in moves the "
                                     "memory of a GPU",
                                     gpu->id, gpu->name, base::showSize(gpu->memory)),
               .remedy = "measure between host buffers, without --cuda"};
}

}  // namespace viaduct::measure::p2p
