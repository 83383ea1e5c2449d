// GPUs, as their driver library reports them. It is loaded at run time, so that neither the build
// nor the program needs CUDA. Threads: any.
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

// The GPU of that number, or why it is not usable: no driver library, an error of the driver, or a
// number that is too high.
Result<Gpu> findGpu(int id, const std::string& library = "libcuda.so.1");

}  // namespace viaduct::host
