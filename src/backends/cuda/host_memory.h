// Registers host memory with the driver, on the registrar, so that GPUs copy from and to it
// directly. Threads: any.
#pragma once

#include <cstdint>
#include <memory>

#include "backends/cuda/pinned_memory.h"
#include "cuda/context.h"

namespace viaduct::cuda {

// Host memory that is registered for all devices, until the object's end.
class HostRegistration {
 public:
  HostRegistration(std::shared_ptr<const Context> context, std::uint64_t start, std::uint64_t bytes,
                   CUdeviceptr device)
      : start_(start), bytes_(bytes), device_(device), context_(std::move(context)) {}
  ~HostRegistration();
  HostRegistration(const HostRegistration&) = delete;
  HostRegistration& operator=(const HostRegistration&) = delete;

  bool covers(std::uint64_t at, std::uint64_t length) const {
    return at >= start_ && length <= bytes_ && at - start_ <= bytes_ - length;
  }
  std::uint64_t bytes() const { return bytes_; }
  // The distance from an address to the one that kernels use.
  std::uint64_t deviceShift() const { return device_ - start_; }

 private:
  const std::uint64_t start_, bytes_;
  const CUdeviceptr device_;
  const std::shared_ptr<const Context> context_;
};

// Starts the registration of a pin of host memory, unless one has started. It ends as kDone, as
// kRefused, or as kForeign if the driver knows the memory already. Then all bells ring. `most`: the
// bytes that this process may have registered.
void registerHost(const std::shared_ptr<PinnedMemory>& memory,
                  const std::shared_ptr<const Context>& context, std::uint64_t most);
// Ends the registration of a withdrawn pin that nobody uses, if it has one. False: it is not over
// yet. The bells ring when it is.
bool unregisterHost(const std::shared_ptr<PinnedMemory>& memory);

}  // namespace viaduct::cuda
