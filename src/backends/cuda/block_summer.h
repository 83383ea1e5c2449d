// Sums of blocks in memory of a GPU, for their digests. A kernel computes them, or this host if the
// GPU or its driver cannot run the kernel. Threads: any.
#pragma once

#include <viaduct/result.h>

#include <memory>
#include <mutex>
#include <optional>
#include <span>
#include <vector>

#include "backends/cuda/gpu_kernel.h"
#include "backends/cuda/mapped_memory.h"
#include "base/block_sums.h"
#include "core/backend.h"
#include "cuda/context.h"

namespace viaduct::cuda {

class BlockSummer : public std::enable_shared_from_this<BlockSummer> {
 public:
  explicit BlockSummer(std::shared_ptr<const Context> context) : context_(std::move(context)) {}
  // core::DeviceMemory describes its functions with these names.
  std::uint64_t sumsAtOnce();
  Result<std::unique_ptr<core::PendingSums>> startSums(std::span<const core::BlockPiece> pieces);

 private:
  class Launch;
  // A stream with a table, for one launch at a time.
  struct SumSlot {
    explicit SumSlot(std::shared_ptr<const Context> on) : context(std::move(on)) {}
    ~SumSlot();
    SumSlot(const SumSlot&) = delete;
    SumSlot& operator=(const SumSlot&) = delete;

    const std::shared_ptr<const Context> context;
    CUstream stream = nullptr;
    MappedMemory sums = {}, rows = {};
  };

  const GpuKernel* kernel();
  Result<std::unique_ptr<SumSlot>> freeSlot(std::size_t rows);
  void giveBack(std::unique_ptr<SumSlot> slot);
  Status checkAlive(std::span<const core::BlockPiece> pieces) const;
  Result<std::unique_ptr<core::PendingSums>> sumByHost(
      std::span<const core::BlockPiece> pieces) const;

  const std::shared_ptr<const Context> context_;
  std::mutex mutex_;  // guards the rest
  bool tried_ = false;
  std::unique_ptr<const GpuKernel> kernel_;  // null: not loaded
  std::vector<std::unique_ptr<SumSlot>> free_;
};

}  // namespace viaduct::cuda
