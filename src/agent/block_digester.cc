#include "agent/block_digester.h"

#include <fmt/format.h>

#include <algorithm>

#include "base/sizes.h"
#include "core/digest.h"

namespace viaduct::agent {
namespace {

// A part takes about 0.1 ms: a thread that makes progress does other work between two parts.
constexpr std::uint64_t kMostHostBytes = base::kMiB;
constexpr std::uint64_t kMostGpuBytes = base::kMiB;
constexpr std::size_t kMostGpuPieces = 256;

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

// The GPU that has the block; none: it lies in host memory.
Result<std::optional<std::uint32_t>> BlockDigester::gpuOf(std::uint64_t number) const {
  if (!memory_) return std::optional<std::uint32_t>();
  const Extent block = this->block(number);
  const PinInfo* const pin = memory_->find(block);
  if (pin == nullptr)
    return notDigested(Code::kDenied, number, block, "is not in one pin", "pin its memory");
  if (isStorage(pin->kind))
    return notDigested(Code::kUnsupported, number, block,
                       fmt::format("is in a pin of kind {}", memoryKindName(pin->kind)),
                       "read it into memory first");
  if (pin->kind == MemoryKind::kHost) return std::optional<std::uint32_t>();
  return std::optional(pin->device);
}

void BlockDigester::advanceBy(std::uint64_t bytes, const base::BlockSums& sums,
                              const Found& found) {
  const std::uint64_t whole = block(next_).bytes;
  sums_ += sums;
  offset_ += bytes;
  if (offset_ != whole) return;
  found(next_++, core::digestFrom(sums_, whole));
  sums_ = {};
  offset_ = 0;
}

Status BlockDigester::advance(const Found& found) {
  for (std::uint64_t room = kMostHostBytes; !done() && room >= base::kStripeBytes;) {
    VIADUCT_TRY(const auto gpu, gpuOf(next_));
    if (gpu) return advanceOnGpu(*gpu, found);
    const Extent block = this->block(next_);
    // All pieces but a block's last one are whole stripes.
    const std::uint64_t bytes =
        std::min(block.bytes - offset_, room / base::kStripeBytes * base::kStripeBytes);
    advanceBy(bytes, base::blockSums(offset_, bytesAt(block.address + offset_, bytes)), found);
    room -= bytes;
  }
  return Ok{};
}

Status BlockDigester::advanceOnGpu(std::uint32_t gpu, const Found& found) {
  std::vector<core::BlockPiece> pieces;
  std::uint64_t room = kMostGpuBytes, offset = offset_;
  for (std::uint64_t at = next_; at < count() && room != 0 && pieces.size() < kMostGpuPieces;) {
    VIADUCT_TRY(const auto there, gpuOf(at));
    if (there != gpu) break;
    const Extent block = this->block(at);
    const std::uint64_t bytes =
        std::min(block.bytes - offset, room / base::kStripeBytes * base::kStripeBytes);
    if (bytes == 0) break;
    pieces.push_back({.address = block.address + offset, .bytes = bytes, .offset = offset});
    room -= bytes;
    offset += bytes;
    if (offset == block.bytes) {
      ++at;
      offset = 0;
    }
  }
  VIADUCT_TRY(const auto sums, memory_->gpus()->sums(gpu, pieces));
  for (std::size_t i = 0; i < pieces.size(); ++i) advanceBy(pieces[i].bytes, sums[i], found);
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
