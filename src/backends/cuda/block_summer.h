// Sums of blocks in memory of a GPU, for their digests. Threads: any, one at a time computes.
#pragma once

#include <viaduct/result.h>

#include <memory>
#include <mutex>
#include <span>
#include <vector>

#include "base/block_sums.h"
#include "core/backend.h"
#include "cuda/context.h"

namespace viaduct::cuda {

class BlockSummer {
 public:
  explicit BlockSummer(std::shared_ptr<const Context> context) : context_(std::move(context)) {}
  // As core::DeviceMemory::sums().
  Result<std::vector<base::BlockSums>> sums(std::span<const core::BlockPiece> pieces);

 private:
  Result<base::BlockSums> sumByHost(const core::BlockPiece& piece);

  const std::shared_ptr<const Context> context_;
  std::mutex mutex_;  // guards the rest
  std::vector<std::byte> copy_;
};

}  // namespace viaduct::cuda
