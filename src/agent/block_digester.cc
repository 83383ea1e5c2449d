#include "agent/block_digester.h"

#include <fmt/format.h>

#include <algorithm>

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

// The GPU that has the block; none: it lies in host memory. Neighbours mostly lie in one pin.
Result<std::optional<std::uint32_t>> BlockDigester::gpuOf(std::uint64_t number,
                                                          const Extent& block) {
  if (!memory_) return std::optional<std::uint32_t>();
  const bool same = pin_ != nullptr && block.address >= pin_->address &&
                    block.bytes <= pin_->bytes &&
                    block.address - pin_->address <= pin_->bytes - block.bytes;
  if (!same) pin_ = memory_->find(block);
  if (pin_ == nullptr)
    return notDigested(Code::kDenied, number, block, "is not in one pin", "pin its memory");
  if (isStorage(pin_->kind))
    return notDigested(Code::kUnsupported, number, block,
                       fmt::format("is in a pin of kind {}", memoryKindName(pin_->kind)),
                       "read it into memory first");
  if (pin_->kind == MemoryKind::kHost) return std::optional<std::uint32_t>();
  return std::optional(pin_->device);
}

void BlockDigester::advanceBy(std::uint64_t bytes, const base::BlockSums& sums,
                              const Found& found) {
  const std::uint64_t whole = block(next_.block).bytes;
  sums_ += sums;
  next_.offset += bytes;
  if (next_.offset != whole) return;
  found(next_.block, core::digestFrom(sums_, whole));
  sums_ = {};
  next_ = {.block = next_.block + 1};
}

Status BlockDigester::advance(const Found& found) {
  if (!batches_.empty()) return advanceOnGpu(found);
  for (std::uint64_t room = kMostHostBytes; !done() && room >= base::kStripeBytes;) {
    const Extent block = this->block(next_.block);
    VIADUCT_TRY(const auto gpu, gpuOf(next_.block, block));
    if (gpu) return advanceOnGpu(found);
    // All pieces but a block's last one are whole stripes.
    const std::uint64_t bytes =
        std::min(block.bytes - next_.offset, room / base::kStripeBytes * base::kStripeBytes);
    advanceBy(bytes, base::blockSums(next_.offset, bytesAt(block.address + next_.offset, bytes)),
              found);
    room -= bytes;
  }
  return Ok{};
}

Status BlockDigester::advanceOnGpu(const Found& found) {
  if (batches_.empty()) begun_ = next_;
  while (batches_.size() < kBatches) {
    const std::size_t before = batches_.size();
    VIADUCT_CHECK(startBatch());
    if (batches_.size() == before) break;
  }
  const Batch batch = std::move(batches_.front());
  batches_.pop_front();
  VIADUCT_TRY(const auto sums, batch.sums->wait());
  for (std::size_t i = 0; i < sums.size(); ++i) advanceBy(batch.pieces[i].bytes, sums[i], found);
  return Ok{};
}

// Starts the sums of the next blocks, if they are in memory of a GPU.
Status BlockDigester::startBatch() {
  std::optional<std::uint32_t> gpu;
  Batch batch;
  for (std::uint64_t room = 0; begun_.block < count() && batch.pieces.size() < kMostGpuPieces;) {
    const Extent block = this->block(begun_.block);
    VIADUCT_TRY(const auto there, gpuOf(begun_.block, block));
    if (batch.pieces.empty()) {
      if (!there) return Ok{};
      gpu = there;
      VIADUCT_TRY(room, memory_->gpus()->sumsAtOnce(*gpu));
    }
    const std::uint64_t bytes = std::min(block.bytes - begun_.offset, room);
    if (there != gpu || bytes == 0) break;
    batch.pieces.push_back(
        {.address = block.address + begun_.offset, .bytes = bytes, .offset = begun_.offset});
    // All pieces but a block's last one are whole stripes, because the room is.
    room = (room - bytes) / base::kStripeBytes * base::kStripeBytes;
    begun_.offset += bytes;
    if (begun_.offset == block.bytes) begun_ = {.block = begun_.block + 1};
  }
  if (batch.pieces.empty()) return Ok{};
  VIADUCT_TRY(batch.sums, memory_->gpus()->startSums(*gpu, batch.pieces));
  batches_.push_back(std::move(batch));
  return Ok{};
}

Status BlockCheck::advance() {
  return digester_.advance([this](std::uint64_t number, const Digest& digest) {
    if (digest == expected_[number]) return;
    if (corrupt_.empty()) found_ = digest;
    corrupt_.push_back(static_cast<std::uint32_t>(number));
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
