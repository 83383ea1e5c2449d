// A transfer whose owner can end it for good. Threads: post() and fence() from any; the other
// calls as for Transfer.
#pragma once

#include <viaduct/transfer.h>

#include <mutex>
#include <utility>

namespace viaduct::nixl {

class FencedTransfer : public Transfer {
 public:
  // After fence(), post() fails with these two texts. They live as long as the program.
  FencedTransfer(Transfer planned, const char* operation, const char* refusal)
      : Transfer(std::move(planned)), operation_(operation), refusal_(refusal) {}

  Status post(const PostOptions& options) {
    const std::lock_guard one_at_a_time(posting_);
    if (fenced_) return Error{.operation = operation_, .detail = refusal_};
    return Transfer::post(options);
  }

  // Cancels a transfer that runs, and waits for its end. No post begins afterwards, not even one
  // that another thread is about to begin.
  void fence() {
    {
      const std::lock_guard after_any_post(posting_);
      fenced_ = true;
    }
    if (state() != TransferState::kRunning) return;
    cancel();
    static_cast<void>(wait());  // ignores the result: the owner gives the transfer up
  }

 private:
  const char* const operation_;
  const char* const refusal_;
  std::mutex posting_;
  bool fenced_ = false;  // guarded by posting_
};

}  // namespace viaduct::nixl
