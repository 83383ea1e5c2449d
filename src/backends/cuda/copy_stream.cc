#include "backends/cuda/copy_stream.h"

#include <algorithm>
#include <cstring>
#include <utility>

namespace viaduct::cuda {

namespace {

// A callback of the driver. It owns `bell`.
void ringBell(CUstream, CUresult, void* bell) {
  const std::unique_ptr<std::shared_ptr<EndBell>> owned(
      static_cast<std::shared_ptr<EndBell>*>(bell));
  (*owned)->ring();
}

}  // namespace

Result<std::unique_ptr<CopyStream>> CopyStream::open(std::shared_ptr<const Context> context,
                                                     Direction direction, const GpuKernel* kernel,
                                                     std::uint32_t groups,
                                                     std::shared_ptr<EndBell> bell) {
  std::unique_ptr<CopyStream> out(
      new CopyStream(std::move(context), kernel, groups, std::move(bell)));
  VIADUCT_CHECK(out->open(direction));
  return out;
}

Status CopyStream::open(Direction direction) {
  VIADUCT_TRY(const auto current, Current::of(*context_));
  VIADUCT_CUDA_CALL(*context_, streamCreateWithPriority, &stream_, kStreamNonBlocking, 0);
  VIADUCT_CUDA_CALL(*context_, streamCreateWithPriority, &ringing_, kStreamNonBlocking, 0);
  for (CopySlot& slot : slots_) {
    VIADUCT_CUDA_CALL(*context_, eventCreate, &slot.ended, kEventDisableTiming);
    slot.batch.most_bytes = mostBytesOfBatch(direction);
    slot.batch.uses.reserve(kMostPins);
    slot.batch.engine.reserve(kMostCopies);
  }
  if (direction == Direction::kWithin) most_in_flight_ = kBatchesWithin;
  if (kernel_ == nullptr) return Ok{};
  // Kernels read the rows over the bus, which takes less time than a copy before each launch.
  // There is room for the rows of kMostCopies aligned blocks. A batch of unaligned blocks may have
  // to end earlier.
  const std::size_t rows = RowWriter::roomFor(kMostCopies / 3, groups_ * kMostWarpsOfGroup);
  VIADUCT_TRY(rows_, MappedMemory::allocate(context_, most_in_flight_ * rows * sizeof(Row)));
  for (std::size_t i = 0; i < most_in_flight_; ++i) {
    slots_[i].rows = static_cast<Row*>(rows_.host()) + i * rows;
    slots_[i].kernel_rows = rows_.device() + i * rows * sizeof(Row);
    slots_[i].batch.most_rows = rows;
  }
  return Ok{};
}

CopyStream::~CopyStream() {
  const Api& api = context_->api();
  if (const auto current = Current::of(*context_)) {
    for (CUstream stream : {stream_, ringing_})
      if (stream != nullptr) {
        api.streamSynchronize(stream);
        api.streamDestroy(stream);
      }
    for (const CopySlot& slot : slots_)
      if (slot.ended != nullptr) api.eventDestroy(slot.ended);
  }
  for (CopySlot& slot : slots_) slot.batch.clear();
}

CopyBatch* CopyStream::next(std::size_t copies, std::uint64_t bytes) {
  if (in_flight_ == most_in_flight_) return nullptr;
  CopySlot& slot = this->slot(in_flight_);
  slot.batch.most_copies = std::min(copies, kMostCopies);
  slot.batch.rows.begin(slot.rows, std::min(slot.batch.most_copies * bytes, slot.batch.most_bytes),
                        groups_ * kMostWarpsOfGroup);
  return &slot.batch;
}

Status CopyStream::launch(Clock::time_point now) {
  CopySlot& slot = this->slot(in_flight_++);
  moved_ = now;
  Status begun = copyByEngine(slot.batch.engine);
  if (begun && slot.batch.kernel_copies != 0) begun = copyByKernel(slot);
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

Status CopyStream::copyByKernel(CopySlot& slot) {
  auto count = static_cast<std::uint32_t>(slot.batch.rows.end());
  std::array<void*, 2> arguments{&slot.kernel_rows, &count};
  return kernel_->launch(stream_, count, groups_, arguments);
}

// Records the event that reports the batch's end. If that fails, nothing would report the end, so
// waits for the stream instead.
Status CopyStream::record(CopySlot& slot) {
  const CUresult recorded = context_->api().eventRecord(slot.ended, stream_);
  slot.recorded = recorded == CUresult::kSuccess;
  if (slot.recorded) return Ok{};
  context_->api().streamSynchronize(stream_);
  return context_->error(CallName::eventRecord, recorded);
}

CopyStream::FinishedBatch CopyStream::finished() {
  if (in_flight_ == 0) return {};
  CopySlot& slot = this->slot(0);
  if (slot.recorded) {
    const CUresult state = context_->api().eventQuery(slot.ended);
    if (state == CUresult::kNotReady) return {};
    if (state != CUresult::kSuccess && !slot.why)
      slot.why = context_->error(CallName::eventQuery, state);
  }
  return {&slot.batch, slot.why};
}

void CopyBatch::clear() {
  for (const Use& use : uses) use.pin->leave();
  bytes = 0;
  uses.clear();
  engine.clear();
  kernel_copies = 0;
}

void CopyStream::release(Clock::time_point now) {
  moved_ = now;
  CopySlot& slot = this->slot(0);
  slot.batch.clear();
  slot.why.reset();
  oldest_ = (oldest_ + 1) % most_in_flight_;
  --in_flight_;
  rings_ -= std::min<std::size_t>(rings_, 1);
}

// A batch whose callback cannot be added stays silent, so the copier polls it. cuLaunchHostFunc
// would not call its function after a failure of the GPU, so it is not used here.
void CopyStream::ringFor(Clock::time_point before) {
  if (moved_ > before) return;
  for (; rings_ < in_flight_; ++rings_) {
    const CopySlot& slot = this->slot(rings_);
    if (!slot.recorded) return;
    const Api& api = context_->api();
    if (api.streamWaitEvent(ringing_, slot.ended, 0) != CUresult::kSuccess) return;
    // After a failure of the GPU the callback may come when the stream is gone.
    auto bell = std::make_unique<std::shared_ptr<EndBell>>(bell_);
    if (api.streamAddCallback(ringing_, ringBell, bell.get(), 0) != CUresult::kSuccess) return;
    static_cast<void>(bell.release());
  }
}

Status CopyStream::synchronize() {
  VIADUCT_CUDA_CALL(*context_, streamSynchronize, stream_);
  return Ok{};
}

}  // namespace viaduct::cuda
