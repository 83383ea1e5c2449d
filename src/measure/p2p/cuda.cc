#include "measure/p2p/cuda.h"

#include <fmt/format.h>

#include "base/sizes.h"
#include "host/gpu.h"

namespace viaduct::measure::p2p {

Status checkCuda(int gpu_id) {
  const auto gpu = host::findGpu(gpu_id);
  return Error{
      .code = Code::kUnsupported,
      .operation = "--cuda",
      .detail = fmt::format("this version does not move GPU memory; {}",
                            gpu ? fmt::format("GPU {} ({}, {}) stays unused", gpu->id, gpu->name,
                                              base::showSize(gpu->memory))
                                : "this host has no usable GPU either: " + gpu.error().detail),
      .remedy = "measure between host buffers, without --cuda"};
}

}  // namespace viaduct::measure::p2p
