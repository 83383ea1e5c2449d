#include "backends/cuda/block_summer.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <iterator>
#include <map>
#include <utility>

#include "backends/cuda/kernel/sum_rows_ptx.h"
#include "backends/cuda/sum_table.h"
#include "backends/cuda/warp.h"
#include "base/log.h"
#include "base/sizes.h"
#include "cuda/memory.h"

namespace viaduct::cuda {
namespace {

// The bytes of one launch of the kernel, and of one copy to this host. Each takes about 0.1 ms.
constexpr std::uint64_t kAtOnceByKernel = 128 * base::kMiB, kAtOnceByHost = base::kMiB;
constexpr std::uint32_t kGroupsOfMultiprocessor = 2;  // as many as fit its registers

// The address ranges of the driver's memory that classify() has found so far.
class KnownMemory {
 public:
  bool has(const core::BlockPiece& piece) {
    const std::uint64_t end = piece.address + piece.bytes;
    if (piece.address >= start_ && end <= end_) return true;
    const auto after = ends_.upper_bound(piece.address);
    if (after == ends_.begin()) return false;
    const auto range = std::prev(after);
    if (end > range->second) return false;
    std::tie(start_, end_) = *range;
    return true;
  }
  void add(std::uint64_t start, std::uint64_t end) {
    std::uint64_t& known = ends_[start];
    known = std::max(known, end);
  }

 private:
  std::uint64_t start_ = 0, end_ = 0;  // of the range that was found last
  std::map<std::uint64_t, std::uint64_t> ends_;
};

// Sums that are complete.
class CompleteSums final : public core::PendingSums {
 public:
  explicit CompleteSums(std::vector<base::BlockSums> sums) : sums_(std::move(sums)) {}
  Result<std::vector<base::BlockSums>> wait() override { return std::move(sums_); }

 private:
  std::vector<base::BlockSums> sums_;
};

}  // namespace

// A launch of the kernel. Until the launch ends, the kernel reads the memory of the pieces.
class BlockSummer::Launch final : public core::PendingSums {
 public:
  Launch(std::shared_ptr<BlockSummer> summer, std::unique_ptr<SumSlot> slot, std::size_t pieces)
      : summer_(std::move(summer)), slot_(std::move(slot)), sums_(pieces) {}
  ~Launch() override {
    const auto current = Current::of(*slot_->context);
    if (current) slot_->context->api().streamSynchronize(slot_->stream);
    summer_->giveBack(std::move(slot_));
  }
  Launch(const Launch&) = delete;
  Launch& operator=(const Launch&) = delete;

  Status start(const GpuKernel& kernel, std::span<const core::BlockPiece> pieces,
               std::uint64_t most_bytes) {
    const Context& context = *slot_->context;
    count_ = cutSums(pieces, most_bytes, static_cast<SumRow*>(slot_->rows.host()));
    if (count_ == 0) return Ok{};
    VIADUCT_TRY(const auto current, Current::of(context));
    CUdeviceptr rows = slot_->rows.device(), sums = slot_->sums.device();
    std::array<void*, 3> arguments{&rows, &sums, &count_};
    return kernel.launch(slot_->stream, count_, groupsOf(context), arguments);
  }
  Result<std::vector<base::BlockSums>> wait() override {
    const Context& context = *slot_->context;
    VIADUCT_TRY(const auto current, Current::of(context));
    VIADUCT_CUDA_CALL(context, streamSynchronize, slot_->stream);
    const auto* const rows = static_cast<const SumRow*>(slot_->rows.host());
    const auto* const sums = static_cast<const base::BlockSums*>(slot_->sums.host());
    for (std::uint32_t i = 0; i < count_; ++i) sums_[rows[i].piece] += sums[i];
    return std::move(sums_);
  }
  static std::uint32_t groupsOf(const Context& context) {
    return std::max(context.device().multiprocessors, 1U) * kGroupsOfMultiprocessor;
  }

 private:
  const std::shared_ptr<BlockSummer> summer_;
  std::unique_ptr<SumSlot> slot_;
  std::uint32_t count_ = 0;  // rows
  std::vector<base::BlockSums> sums_;
};

BlockSummer::SumSlot::~SumSlot() {
  const auto current = Current::of(*context);
  if (current && stream != nullptr) context->api().streamDestroy(stream);
}

// Loads the sum kernel at the first call. Null: this GPU cannot run the kernel.
const GpuKernel* BlockSummer::kernel() {
  const std::lock_guard lock(mutex_);
  if (std::exchange(tried_, true)) return kernel_.get();
  auto loaded = GpuKernel::load(context_, kSumRowsPtx, "viaduct_sum_rows");
  if (loaded)
    kernel_ = *std::move(loaded);
  else
    base::log(base::LogLevel::kWarning, "cuda: digests of GPU memory are slow: {}",
              loaded.error().text());
  return kernel_.get();
}

std::uint64_t BlockSummer::sumsAtOnce() {
  return kernel() != nullptr ? kAtOnceByKernel : kAtOnceByHost;
}

Result<std::unique_ptr<core::PendingSums>> BlockSummer::startSums(
    std::span<const core::BlockPiece> pieces) {
  const GpuKernel* const kernel = this->kernel();
  if (kernel == nullptr) return sumByHost(pieces);
  VIADUCT_CHECK(checkAlive(pieces));
  const std::uint64_t bytes = bytesOf(pieces);
  const std::uint64_t most =
      mostBytesOfSumRow(bytes, Launch::groupsOf(*context_) * kMostWarpsOfGroup);
  VIADUCT_TRY(auto slot, freeSlot(roomForSums(pieces.size(), bytes, most)));
  auto out = std::make_unique<Launch>(shared_from_this(), std::move(slot), pieces.size());
  VIADUCT_CHECK(out->start(*kernel, pieces, most));
  return std::unique_ptr<core::PendingSums>(std::move(out));
}

// Refuses pieces of freed memory. A kernel that touches freed memory breaks its context for the
// whole process.
Status BlockSummer::checkAlive(std::span<const core::BlockPiece> pieces) const {
  KnownMemory known;
  for (const core::BlockPiece& piece : pieces) {
    if (piece.bytes == 0 || known.has(piece)) continue;
    VIADUCT_TRY(const MemoryFacts facts, classify(*context_, piece.address, piece.bytes));
    if (facts.ranges.empty() || facts.device != context_->ordinal())
      return Error{.code = Code::kDenied,
                   .operation = "digest",
                   .detail = fmt::format("{} bytes at {:#x} are no memory of this GPU", piece.bytes,
                                         piece.address),
                   .device = context_->device().name,
                   .cause = "the memory was freed since it was pinned",
                   .remedy = "release the pin before the memory is freed"};
    known.add(facts.ranges.front().base, facts.ranges.back().base + facts.ranges.back().bytes);
  }
  return Ok{};
}

Result<std::unique_ptr<BlockSummer::SumSlot>> BlockSummer::freeSlot(std::size_t rows) {
  std::unique_ptr<SumSlot> slot;
  {
    const std::lock_guard lock(mutex_);
    if (!free_.empty()) {
      slot = std::move(free_.back());
      free_.pop_back();
    }
  }
  if (!slot) {
    slot = std::make_unique<SumSlot>(context_);
    VIADUCT_TRY(const auto current, Current::of(*context_));
    VIADUCT_CUDA_CALL(*context_, streamCreateWithPriority, &slot->stream, kStreamNonBlocking, 0);
  }
  if (slot->rows.bytes() < rows * sizeof(SumRow)) {
    VIADUCT_TRY(slot->rows, MappedMemory::allocate(context_, rows * sizeof(SumRow)));
    VIADUCT_TRY(slot->sums, MappedMemory::allocate(context_, rows * sizeof(base::BlockSums)));
  }
  return slot;
}

void BlockSummer::giveBack(std::unique_ptr<SumSlot> slot) {
  const std::lock_guard lock(mutex_);
  free_.push_back(std::move(slot));
}

// Copies the pieces to host memory, part by part.
Result<std::unique_ptr<core::PendingSums>> BlockSummer::sumByHost(
    std::span<const core::BlockPiece> pieces) const {
  std::vector<std::byte> copy(kAtOnceByHost);
  std::vector<base::BlockSums> out(pieces.size());
  for (std::size_t i = 0; i < pieces.size(); ++i)
    for (std::uint64_t at = 0; at < pieces[i].bytes;) {
      const auto part = std::span(copy).first(std::min(pieces[i].bytes - at, kAtOnceByHost));
      VIADUCT_CHECK(copyToHost(*context_, part, pieces[i].address + at));
      out[i] += base::blockSums(pieces[i].offset + at, part);
      at += part.size();
    }
  return std::unique_ptr<core::PendingSums>(std::make_unique<CompleteSums>(std::move(out)));
}

}  // namespace viaduct::cuda
