#include "agent/basis/block_digester.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "base/sizes.h"
#include "core/digest.h"

namespace viaduct::agent {
namespace {

// A part takes about 0.1 ms: a thread that makes progress does other work between two parts.
constexpr std::uint64_t kMostHostBytes = base::kMiB;
constexpr std::size_t kMostGpuPieces = 8192;
// A GPU has the next batch while the host adds up the sums of the last one.
constexpr std::size_t kBatches = 2;

std::span<const std::byte> bytesAt(std::uint64_t address, std::uint64_t bytes) {
  // NOLINTNEXTLINE(performance-no-int-to-ptr): a registered address becomes memory here
  return {reinterpret_cast<const std::byte*>(static_cast<std::uintptr_t>(address)), bytes};
}

bool isIn(const PinInfo* pin, const Extent& block) {
  return pin != nullptr && block.address >= pin->address && block.bytes <= pin->bytes &&
         block.address - pin->address <= pin->bytes - block.bytes;
}

Error notDigested(Code code, std::uint64_t number, const Extent& block, std::string why,
                  std::string remedy) {
  return {.code = code,
          .operation = "digest",
          .detail = fmt::format("block {} ({} bytes at {:#x}) {}", number, block.bytes,
                                block.address, why),
          .remedy = std::move(remedy)};
}

}  // namespace

BlockMemory::BlockMemory(core::PinMap pins, std::span<const PinInfo> infos,
                         std::shared_ptr<core::DeviceMemory> gpus)
    : pins_(std::move(pins)), gpus_(std::move(gpus)) {
  for (const PinInfo& info : infos) by_slot_.emplace(info.slot, info);
}

const PinInfo* BlockMemory::find(const Extent& block) const {
  const core::PinRange* const range = pins_.cover(block.address, block.bytes);
  return range == nullptr ? nullptr : &by_slot_.at(range->slot);
}

std::uint64_t BlockDigester::count() const {
  return selection_->indices.empty() ? selection_->blocks.count() : selection_->indices.size();
}

Extent BlockDigester::block(std::uint64_t number) const {
  const auto& indices = selection_->indices;
  return selection_->blocks[indices.empty() ? number : indices[number]];
}

std::uint64_t BlockDigester::bytesOf(std::uint64_t number) const {
  const std::uint64_t same = selection_->blocks.blockBytes();
  return same != 0 ? same : block(number).bytes;
}

// Whether find() has found a pin of host memory. `pin_` is null if the caller knows that all blocks
// are in host memory.
bool BlockDigester::isInHostMemory() const {
  return pin_ == nullptr || pin_->kind == MemoryKind::kHost;
}

// Finds the pin of the block. Neighbours mostly lie in one pin.
Status BlockDigester::find(std::uint64_t number, const Extent& block) {
  if (!memory_) return Ok{};
  pin_ = memory_->find(block);
  if (pin_ == nullptr)
    return notDigested(Code::kDenied, number, block, "is not in one pin", "pin its memory");
  if (isStorage(pin_->kind))
    return notDigested(Code::kUnsupported, number, block,
                       fmt::format("is in a pin of kind {}", memoryKindName(pin_->kind)),
                       "read it into memory first");
  return Ok{};
}

void BlockDigester::endBlock(const base::BlockSums& sums, std::uint64_t bytes) {
  // No temporary digest: its copy would wait for the processor's store buffer.
  Digest& digest = digests_.emplace_back();
  digest = core::digestFrom(sums, bytes);
  ++next_.block;
  next_.offset = 0;
}

void BlockDigester::advanceBy(std::uint64_t bytes, const base::BlockSums& sums) {
  const std::uint64_t whole = bytesOf(next_.block);
  if (bytes == whole) return endBlock(sums, whole);
  sums_ += sums;
  next_.offset += bytes;
  if (next_.offset == whole) endBlock(std::exchange(sums_, {}), whole);
}

Status BlockDigester::advance(const OnDigests& found) {
  digests_.clear();
  const std::uint64_t first = next_.block;
  VIADUCT_CHECK(batches_.empty() ? advanceOnHost() : advanceOnGpu());
  found(first, digests_);
  return Ok{};
}

Status BlockDigester::advanceOnHost() {
  for (std::uint64_t room = kMostHostBytes; !done() && room >= base::kStripeBytes;) {
    const Extent block = this->block(next_.block);
    if (!isIn(pin_, block)) VIADUCT_CHECK(find(next_.block, block));
    if (!isInHostMemory()) return advanceOnGpu();
    // All pieces but a block's last one are whole stripes.
    const std::uint64_t bytes =
        std::min(block.bytes - next_.offset, room / base::kStripeBytes * base::kStripeBytes);
    advanceBy(bytes, base::blockSums(next_.offset, bytesAt(block.address + next_.offset, bytes)));
    room -= bytes;
  }
  return Ok{};
}

Status BlockDigester::advanceOnGpu() {
  if (batches_.empty()) begun_ = next_;
  while (batches_.size() < kBatches) {
    const std::size_t before = batches_.size();
    VIADUCT_CHECK(startBatch());
    if (batches_.size() == before) break;
  }
  const GpuPieces batch = std::move(batches_.front());
  batches_.pop_front();
  VIADUCT_TRY(const auto sums, batch.sums->wait());
  digests_.reserve(digests_.size() + sums.size());
  for (std::size_t i = 0; i < sums.size(); ++i) advanceBy(batch.pieces[i].bytes, sums[i]);
  return Ok{};
}

// Starts the sums of the next blocks, if they are in memory of a GPU.
Status BlockDigester::startBatch() {
  GpuPieces batch;
  batch.pieces.reserve(std::min<std::uint64_t>(count() - begun_.block, kMostGpuPieces));
  std::uint32_t gpu = 0;
  for (std::uint64_t room = 0, end = count();
       begun_.block < end && batch.pieces.size() < kMostGpuPieces;) {
    const Extent block = this->block(begun_.block);
    if (!isIn(pin_, block)) VIADUCT_CHECK(find(begun_.block, block));
    if (isInHostMemory()) break;
    if (batch.pieces.empty()) {
      gpu = pin_->device;
      VIADUCT_TRY(room, memory_->gpus()->sumsAtOnce(gpu));
    }
    const std::uint64_t bytes = std::min(block.bytes - begun_.offset, room);
    if (pin_->device != gpu || bytes == 0) break;
    addPiece(batch, block, bytes);
    // All pieces but a block's last one are whole stripes, because `room` is a multiple of a
    // stripe.
    room = (room - bytes) / base::kStripeBytes * base::kStripeBytes;
  }
  if (batch.pieces.empty()) return Ok{};
  VIADUCT_TRY(batch.sums, memory_->gpus()->startSums(gpu, batch.pieces));
  batches_.push_back(std::move(batch));
  return Ok{};
}

// Adds the next bytes of `block` to the batch.
void BlockDigester::addPiece(GpuPieces& batch, const Extent& block, std::uint64_t bytes) {
  core::BlockPiece& piece = batch.pieces.emplace_back();
  piece.address = block.address + begun_.offset;
  piece.bytes = bytes;
  piece.offset = begun_.offset;
  begun_.offset += bytes;
  if (begun_.offset != block.bytes) return;
  ++begun_.block;
  begun_.offset = 0;
}

Status BlockCheck::advance() {
  return digester_.advance([this](std::uint64_t first, std::span<const Digest> digests) {
    for (std::size_t i = 0; i < digests.size(); ++i) {
      if (digests[i] == expected_[first + i]) continue;
      if (corrupt_.empty()) found_ = digests[i];
      corrupt_.push_back(static_cast<std::uint32_t>(first + i));
    }
  });
}

Error BlockCheck::error(const PinInfo* pin) const {
  const std::uint32_t first = corrupt_.front();
  const Extent block = firstCorrupt();
  const std::string where =
      pin == nullptr || pin->label.empty() ? "" : fmt::format(" in \"{}\"", pin->label);
  return {.code = Code::kCorrupt,
          .operation = "check",
          .detail = fmt::format(
              "block {} ({} bytes at {:#x}{}) has the digest {}, expected {}; {} of {} blocks are "
              "corrupt",
              first, block.bytes, block.address, where, found_.text(), expected_[first].text(),
              corrupt_.size(), expected_.size()),
          .cause = "the block was used again after its digest was made, or was damaged on its way",
          .remedy = "read the block again with a new digest, or compute it again"};
}

Status checkNumberOfDigests(const char* operation, std::uint64_t digests, std::uint64_t blocks) {
  if (digests == blocks) return Ok{};
  return Error{.code = Code::kInvalid,
               .operation = operation,
               .detail = fmt::format("{} digests for {} blocks", digests, blocks),
               .remedy = "pass one digest for each block of the selection, in its order"};
}

}  // namespace viaduct::agent
