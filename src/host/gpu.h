// GPUs, as the driver library tells of them: loaded at run time, so that nothing needs CUDA to be
// built or run. Threads: any.
#pragma once

#include <viaduct/result.h>

#include <cstdint>
#include <string>

namespace viaduct::host {

struct Gpu {
  int id = 0;
  std::string name = {};
  std::uint64_t memory = 0;  // bytes
};

// Why there is no usable GPU of that number: no driver library, the driver's own error, or how many
// there are.
Result<Gpu> findGpu(int id, const std::string& library = "libcuda.so.1");

}  // namespace viaduct::host
