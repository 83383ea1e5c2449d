#include "backends/cuda/copy_stream.h"

#include <algorithm>
#include <cstring>
#include <utility>

namespace viaduct::cuda {
namespace {

constexpr std::uint32_t kThreads = kMostThreadsOfGroup;
// Fewer small copies cost less as single calls than a table and a launch.
constexpr std::size_t kFewestForKernel = 4;
// The rows of a batch: each copy may have two ends and a middle part, and a warp gets several rows.
constexpr std::size_t kRowsOfCopy = 3, kRowsOfEachWarp = 5;

}  // namespace

Result<std::unique_ptr<CopyStream>> CopyStream::open(std::shared_ptr<const Context> context,
                                                     CUfunction kernel, std::uint32_t groups,
                                                     std::shared_ptr<EndBell> bell) {
  std::unique_ptr<CopyStream> out(
      new CopyStream(std::move(context), kernel, groups, std::move(bell)));
  VIADUCT_CHECK(out->open());
  return out;
}

Status CopyStream::open() {
  VIADUCT_TRY(const auto current, Current::of(*context_));
  VIADUCT_CUDA_CALL(*context_, streamCreateWithPriority, &stream_, kStreamNonBlocking, 0);
  VIADUCT_CUDA_CALL(*context_, streamCreateWithPriority, &ringing_, kStreamNonBlocking, 0);
  for (Slot& slot : slots_) {
    VIADUCT_CUDA_CALL(*context_, eventCreate, &slot.ended, kEventDisableTiming);
    slot.batch.uses.reserve(kMostPins);
    slot.batch.engine.reserve(kMostCopies);
    slot.batch.kernel.reserve(kMostCopies);
    slot.batch.plain.reserve(kMostCopies);
  }
  if (kernel_ == nullptr) return Ok{};
  most_rows_ = kRowsOfCopy * kMostCopies + kRowsOfEachWarp * groups_ * (kThreads / kLanes);
  rows_.reserve(most_rows_);
  const std::size_t bytes = most_rows_ * sizeof(Row);
  VIADUCT_CUDA_CALL(*context_, memHostAlloc, &host_rows_, kBatches * bytes, kHostRegisterPortable);
  VIADUCT_CUDA_CALL(*context_, memAlloc, &device_rows_, kBatches * bytes);
  for (std::size_t i = 0; i < kBatches; ++i) {
    slots_[i].host_rows = static_cast<Row*>(host_rows_) + i * most_rows_;
    slots_[i].device_rows = device_rows_ + i * bytes;
  }
  return Ok{};
}

CopyStream::~CopyStream() {
  const auto current = Current::of(*context_);
  if (!current) return;
  const Api& api = context_->api();
  for (CUstream stream : {stream_, ringing_})
    if (stream != nullptr) {
      api.streamSynchronize(stream);
      api.streamDestroy(stream);
    }
  for (const Slot& slot : slots_)
    if (slot.ended != nullptr) api.eventDestroy(slot.ended);
  if (host_rows_ != nullptr) api.memFreeHost(host_rows_);
  if (device_rows_ != 0) api.memFree(device_rows_);
}

Status CopyStream::launch(Clock::time_point now) {
  Slot& slot = this->slot(in_flight_++);
  slot.launched = now;
  Status begun = copyByEngine(slot.batch.engine);
  if (begun && !slot.batch.kernel.empty()) begun = copyByKernel(slot);
  const Status recorded = record(slot);
  if (begun) begun = recorded;
  if (!begun) slot.why = begun.error();
  return begun;
}

Status CopyStream::copyByEngine(std::span<const Copy> copies) {
  for (const Copy& copy : copies)
    VIADUCT_CUDA_CALL(*context_, memcpyAsync, copy.to, copy.from, copy.bytes, stream_);
  return Ok{};
}

Status CopyStream::copyByKernel(Slot& slot) {
  constexpr std::uint32_t kWarps = kThreads / kLanes;  // of a group
  if (slot.batch.kernel.size() < kFewestForKernel) return copyByEngine(slot.batch.plain);
  cutRows(slot.batch.kernel, groups_ * kWarps, rows_);
  if (rows_.size() > most_rows_) return copyByEngine(slot.batch.plain);
  std::memcpy(slot.host_rows, rows_.data(), rows_.size() * sizeof(Row));
  VIADUCT_CUDA_CALL(*context_, memcpyAsync, slot.device_rows,
                    reinterpret_cast<std::uintptr_t>(slot.host_rows), rows_.size() * sizeof(Row),
                    stream_);
  auto count = static_cast<std::uint32_t>(rows_.size());
  std::array<void*, 2> arguments{&slot.device_rows, &count};
  const std::uint32_t needed = (count + kWarps - 1) / kWarps;
  VIADUCT_CUDA_CALL(*context_, launchKernel, kernel_, std::min(groups_, needed), 1, 1, kThreads, 1,
                    1, 0, stream_, arguments.data(), nullptr);
  for (const Copy& copy : slot.batch.kernel) slot.batch.by_kernel += copy.bytes;
  return Ok{};
}

// Without an event nothing tells when the batch ends, so this waits then.
Status CopyStream::record(Slot& slot) {
  const CUresult recorded = context_->api().eventRecord(slot.ended, stream_);
  slot.recorded = recorded == CUresult::kSuccess;
  if (slot.recorded) return Ok{};
  context_->api().streamSynchronize(stream_);
  return context_->error(CallName::eventRecord, recorded);
}

CopyStream::Finished CopyStream::finished() {
  if (in_flight_ == 0) return {};
  Slot& slot = this->slot(0);
  if (slot.recorded) {
    const CUresult state = context_->api().eventQuery(slot.ended);
    if (state == CUresult::kNotReady) return {};
    if (state != CUresult::kSuccess && !slot.why)
      slot.why = context_->error(CallName::eventQuery, state);
  }
  return {&slot.batch, slot.why};
}

void Batch::clear() {
  for (const Use& use : uses) use.pin->leave();
  bytes = by_kernel = 0;
  uses.clear();
  engine.clear();
  kernel.clear();
  plain.clear();
}

void CopyStream::release() {
  Slot& slot = this->slot(0);
  slot.batch.clear();
  slot.why.reset();
  oldest_ = (oldest_ + 1) % kBatches;
  --in_flight_;
  rings_ -= std::min<std::size_t>(rings_, 1);
}

// A batch whose callback cannot be added stays silent, and is polled for. cuLaunchHostFunc's
// function would not be called after a failure of the GPU, and nobody would see that the batch has
// ended.
void CopyStream::ringFor(Clock::time_point before) {
  for (; rings_ < in_flight_; ++rings_) {
    const Slot& slot = this->slot(rings_);
    if (slot.launched > before || !slot.recorded) return;
    const Api& api = context_->api();
    if (api.streamWaitEvent(ringing_, slot.ended, 0) != CUresult::kSuccess ||
        api.streamAddCallback(
            ringing_, [](CUstream, CUresult, void* bell) { static_cast<EndBell*>(bell)->ring(); },
            bell_.get(), 0) != CUresult::kSuccess)
      return;
  }
}

Status CopyStream::synchronize() {
  VIADUCT_CUDA_CALL(*context_, streamSynchronize, stream_);
  return Ok{};
}

}  // namespace viaduct::cuda
