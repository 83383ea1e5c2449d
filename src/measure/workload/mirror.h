// Memory of a GPU in the benchmark: the GPU of a device, and host memory with a copy of its
// contents. The copies are plain calls of the driver, so they do not depend on the measured path.
// Threads: one at a time.
#pragma once

#include <viaduct/settings.h>

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>

#include "cuda/context.h"
#include "measure/workload/mapping.h"
#include "measure/workload/spec.h"

namespace viaduct::measure {

using Gpu = std::shared_ptr<const cuda::Context>;

// Returns the driver that the agents load.
Result<const cuda::Driver*> driverOf(const Settings& settings);

// Returns the GPU of a side's device. `first` is the GPU of the side's first device. A process with
// one device of several uses the only GPU that it sees, as a pod does.
Result<Gpu> gpuOf(const Settings& settings, Mode mode, std::uint32_t first, std::uint32_t number);

// Host memory with a copy of a GPU's memory, for filling and checking. Pages that are not touched
// cost no memory.
class Mirror {
 public:
  static Result<std::unique_ptr<Mirror>> make(Gpu gpu, std::uint64_t address, std::uint64_t bytes);

  std::span<std::byte> bytes() const { return {host_.get(), bytes_}; }
  // Copy a part of bytes() to the GPU's memory, or from there.
  Status push(std::span<const std::byte> part) const;
  Status pull(std::span<std::byte> part) const;

 private:
  Mirror(Gpu gpu, std::uint64_t address, std::uint64_t bytes, Mapping host)
      : gpu_(std::move(gpu)), address_(address), bytes_(bytes), host_(std::move(host)) {}
  std::uint64_t addressOf(const std::byte* at) const {
    return address_ + static_cast<std::uint64_t>(at - host_.get());
  }

  const Gpu gpu_;
  const std::uint64_t address_, bytes_;
  const Mapping host_;
};

}  // namespace viaduct::measure
