// One GPU that an agent uses: its context, the copy kernel, and a stream for each direction.
// Threads: open(), canReach() and summer() any; the streams under the copier's mutex.
#pragma once

#include <viaduct/result.h>

#include <array>
#include <atomic>
#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <string>

#include "backends/cuda/block_summer.h"
#include "backends/cuda/copy_stream.h"
#include "backends/cuda/facts.h"
#include "backends/cuda/gpu_kernel.h"
#include "base/guarded.h"
#include "cuda/context.h"
#include "cuda/driver_thread.h"
#include "cuda/end_bell.h"

namespace viaduct::cuda {

using GpuId = std::array<unsigned char, 16>;  // a UUID

class OpenGpu {
 public:
  // `kernel_below`: in each direction, the size of the blocks below which the kernel copies. If it
  // is empty, open() measures the sizes. That takes some tens of milliseconds at the first call for
  // a device.
  static Result<std::shared_ptr<OpenGpu>> open(const Driver& driver, std::uint32_t ordinal,
                                               AutoSize kernel_below,
                                               const std::shared_ptr<EndBell>& bell);
  ~OpenGpu() = default;
  OpenGpu(const OpenGpu&) = delete;
  OpenGpu& operator=(const OpenGpu&) = delete;

  const std::shared_ptr<const Context>& context() const { return context_; }
  CopyStream& stream(Direction direction) { return *streams_[static_cast<std::size_t>(direction)]; }
  const auto& streams() const { return streams_; }
  BlockSummer& summer() { return *summer_; }
  // Blocks below this size go to the kernel; 0: none.
  std::uint64_t kernelBelow(Direction direction) const {
    return kernel_below_[static_cast<std::size_t>(direction)];
  }
  // Whether kernels here reach memory of that device. The first call for a device enables this
  // access.
  bool canReach(const Context& other);
  // Whether this GPU can address memory of the GPU with that UUID. Also true if this process does
  // not see that GPU: then only the attempt to map its memory gives the answer.
  bool mayAddress(const GpuId& other) const;
  // "GPU 0 (NVIDIA H100), kernel below 32KiB (in), 16KiB (out), 4MiB (within)".
  std::string description() const;

 private:
  explicit OpenGpu(std::shared_ptr<const Context> context)
      : context_(std::move(context)), summer_(endsSoon(new BlockSummer(context_))) {}
  Status measure();

  enum class PeerAccess : std::uint8_t { kUnknown, kYes, kNo };
  static constexpr std::size_t kMostDevices = 64;

  const std::shared_ptr<const Context> context_;
  std::unique_ptr<const GpuKernel> kernel_;
  std::string no_kernel_ = {};  // why kernel_ is null
  std::array<std::unique_ptr<CopyStream>, kDirections> streams_;
  Sizes kernel_below_ = {};
  const std::shared_ptr<BlockSummer> summer_;
  std::array<std::atomic<PeerAccess>, kMostDevices> reach_ = {};
  mutable base::Guarded<std::map<GpuId, bool>> addressable_;
};

}  // namespace viaduct::cuda
