#include "measure/swap/ways.h"

#include "measure/proof/account.h"

namespace viaduct::measure::swap {

Status TransferCopying::copy() {
  const auto start = Clock::now();
  VIADUCT_TRY(Transfer transfer, agent_.plan(kind_, self_, host_, gpu_));
  planned_ += Clock::now() - start;
  VIADUCT_CHECK(transfer.post({.deadline = Deadline::never()}));
  VIADUCT_CHECK(transfer.wait());
  path_ = transfer.path();
  return Ok{};
}

std::string TransferCopying::copiedBy() const { return proof::copiedBy(unproven(path_)); }

std::string TransferCopying::path() const {
  if (path_.shares.empty()) return {};
  const PathShare& share = path_.shares.front();
  return share.backend + "/" + share.way;
}

CallsCopying::~CallsCopying() {
  const auto current = cuda::Current::of(*gpu_);
  if (current && stream_ != nullptr) gpu_->api().streamDestroy(stream_);
}

Status CallsCopying::copy() {
  VIADUCT_TRY(const auto current, cuda::Current::of(*gpu_));
  if (stream_ == nullptr)
    VIADUCT_CUDA_CALL(*gpu_, streamCreateWithPriority, &stream_, cuda::kStreamNonBlocking, 0);
  const Status launched = launch();
  // Copies in flight use the memory, also after a failure.
  VIADUCT_CUDA_CALL(*gpu_, streamSynchronize, stream_);
  return launched;
}

Status CallsCopying::launch() const {
  for (const Call& call : calls_)
    VIADUCT_CUDA_CALL(*gpu_, memcpyAsync, call.to, call.from, block_bytes_, stream_);
  return Ok{};
}

}  // namespace viaduct::measure::swap
