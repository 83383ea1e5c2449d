#include "measure/run/swap_ways.h"

#include <utility>

namespace viaduct::measure::swap {

Status TransferCopying::copy() {
  const auto start = Clock::now();
  VIADUCT_TRY(Transfer transfer, agent_.plan(kind_, self_, host_, gpu_));
  planned_ = Clock::now() - start;
  VIADUCT_CHECK(transfer.post({.deadline = Deadline::never()}));
  VIADUCT_CHECK(transfer.wait());
  for (PathShare& share : transfer.path().shares) path_.add(std::move(share));
  return Ok{};
}

CallsCopying::~CallsCopying() {
  const auto current = cuda::Current::of(*gpu_);
  if (current && stream_ != nullptr) gpu_->api().streamDestroy(stream_);
}

Status CallsCopying::copy() {
  VIADUCT_TRY(const auto current, cuda::Current::of(*gpu_));
  if (stream_ == nullptr)
    VIADUCT_CUDA_CALL(*gpu_, streamCreateWithPriority, &stream_, cuda::kStreamNonBlocking, 0);
  Status launched = launch();
  // Waits even after a failure, because copies in flight still use the memory.
  VIADUCT_CUDA_CALL(*gpu_, streamSynchronize, stream_);
  ++copies_;
  return launched;
}

// Describes the driver's copies as a path of backend cuda. No device counts the bytes of either.
Path CallsCopying::path() const {
  const std::uint64_t ops = copies_ * calls_.size();
  return {{{.backend = "cuda",
            .way = cuda::CallName::memcpyAsync,
            .bytes = ops * block_bytes_,
            .ops = ops}}};
}

Status CallsCopying::launch() const {
  for (const Call& call : calls_)
    VIADUCT_CUDA_CALL(*gpu_, memcpyAsync, call.to, call.from, block_bytes_, stream_);
  return Ok{};
}

}  // namespace viaduct::measure::swap
