// Digests of the blocks of a selection, computed in bounded parts, and their comparison with the
// expected ones. Threads: one at a time for each object. Needs no lock, but the memory has to stay
// pinned.
#pragma once

#include <viaduct/blocks.h>
#include <viaduct/digest.h>
#include <viaduct/memory.h>

#include <cstdint>
#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "base/block_sums.h"
#include "core/backend.h"
#include "core/plan.h"

namespace viaduct::agent {

// The pins of an agent at one time, which tell where a block lies.
class BlockMemory {
 public:
  BlockMemory(core::PinMap pins, std::span<const PinInfo> infos,
              std::shared_ptr<core::DeviceMemory> gpus);
  // The pin that has the block; null: none has it.
  const PinInfo* find(const Extent& block) const;
  core::DeviceMemory* gpus() const { return gpus_.get(); }

 private:
  core::PinMap pins_;
  std::map<std::uint32_t, PinInfo> by_slot_;
  std::shared_ptr<core::DeviceMemory> gpus_;
};

class BlockDigester {
 public:
  // The digests of consecutive blocks.
  using OnDigests = std::function<void(std::uint64_t first, std::span<const Digest> digests)>;
  // The selection outlives the digester. Its indices are in range. `memory` null: all blocks are
  // known to lie in host memory.
  BlockDigester(const Selection& selection, std::shared_ptr<const BlockMemory> memory)
      : selection_(&selection), memory_(std::move(memory)) {}

  // Works for about 0.1 ms, and calls `found` with the blocks that are complete, in order. Sums in
  // memory of a GPU go on between two calls.
  Status advance(const OnDigests& found);
  bool done() const { return next_.block == count(); }
  std::uint64_t count() const;
  // Block `number` of the selection.
  Extent block(std::uint64_t number) const;

 private:
  // A position between two bytes of the selection.
  struct BlockOffset {
    std::uint64_t block = 0, offset = 0;
  };
  // Pieces that a GPU reads.
  struct GpuPieces {
    std::vector<core::BlockPiece> pieces = {};
    std::unique_ptr<core::PendingSums> sums = {};
  };

  std::uint64_t bytesOf(std::uint64_t number) const;
  bool isInHostMemory() const;
  Status find(std::uint64_t number, const Extent& block);
  Status advanceOnHost();
  Status advanceOnGpu();
  void advanceBy(std::uint64_t bytes, const base::BlockSums& sums);
  void endBlock(const base::BlockSums& sums, std::uint64_t bytes);
  Status startBatch();
  void addPiece(GpuPieces& batch, const Extent& block, std::uint64_t bytes);

  const Selection* selection_;
  std::shared_ptr<const BlockMemory> memory_;
  const PinInfo* pin_ = nullptr;      // of the block that find() last looked up
  BlockOffset next_ = {};             // the bytes before it are done
  base::BlockSums sums_ = {};         // of the bytes of its block before next_
  std::vector<Digest> digests_ = {};  // not yet given to `found`
  std::deque<GpuPieces> batches_ = {};
  BlockOffset begun_ = {};  // the end of the batches
};

// Checks blocks against digests.
class BlockCheck {
 public:
  BlockCheck(BlockDigester digester, std::vector<Digest> expected)
      : digester_(std::move(digester)), expected_(std::move(expected)) {}
  // Does a bounded part of the check.
  Status advance();
  bool done() const { return digester_.done(); }
  // The numbers of the corrupt blocks so far.
  const Indices& corrupt() const { return corrupt_; }
  // The error about the first corrupt block. `pin` is the pin that has it.
  Error error(const PinInfo* pin) const;
  Extent firstCorrupt() const { return digester_.block(corrupt_.front()); }

 private:
  BlockDigester digester_;
  std::vector<Digest> expected_;
  Indices corrupt_;
  Digest found_;  // of the first corrupt block
};

// An error unless there is one digest for each block.
Status checkNumberOfDigests(const char* operation, std::uint64_t digests, std::uint64_t blocks);

}  // namespace viaduct::agent
