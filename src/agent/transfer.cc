#include <viaduct/transfer.h>

#include <utility>

#include "agent/core.h"
#include "agent/peer_core.h"
#include "agent/transfer_core.h"

namespace viaduct {

Transfer::Transfer(std::shared_ptr<agent::TransferCore> core) : core_(std::move(core)) {}
Transfer::Transfer(Transfer&&) noexcept = default;

Transfer& Transfer::operator=(Transfer&& other) noexcept {
  Transfer old(std::move(*this));
  core_ = std::move(other.core_);
  return *this;
}

Transfer::~Transfer() {
  if (!core_) return;
  if (core_->running()) {
    cancel();
    static_cast<void>(wait());  // that it was cancelled is no news
  }
  static_cast<void>(core_->agent().hold());  // the thread that ended it has let go of it as well
}

Status Transfer::post(const PostOptions& options) {
  VIADUCT_CHECK(core_->agent().usable("post"));
  auto held = core_->agent().hold();
  return core_->post(held, options);
}

TransferState Transfer::poll() {
  if (core_->running() && core_->agent().usable("poll")) core_->agent().engine().poll();
  return core_->state();
}

TransferState Transfer::state() const { return core_->state(); }

Status Transfer::wait(Deadline until) {
  const auto over = [this] { return !core_->running(); };
  if (core_->running()) {
    // An agent that closes ends it: until then its memory is in use.
    VIADUCT_CHECK(core_->agent().ofThisProcess("wait"));
    if (!core_->agent().engine().wait(over, until.at()))
      return Error{.code = Code::kTimeout,
                   .operation = "wait",
                   .detail = "the transfer is still running",
                   .remedy = "wait again, or cancel()"};
  }
  if (core_->state() == TransferState::kDone) return Ok{};
  TransferEnd ended = end();
  if (ended.state == TransferState::kIdle)
    return Error{.code = Code::kInvalid,
                 .operation = "wait",
                 .detail = "nothing was posted",
                 .remedy = "call post() first"};
  if (ended.error) return *std::move(ended.error);
  return Ok{};
}

void Transfer::cancel() {
  if (!core_->agent().usable("cancel")) return;
  const auto held = core_->agent().hold();
  core_->cancel();
}

TransferEnd Transfer::end() const {
  const auto held = core_->agent().hold();
  return core_->end();
}

Path Transfer::path() const {
  const auto held = core_->agent().hold();
  return core_->path();
}

Path Transfer::carried() const {
  const auto held = core_->agent().hold();
  return core_->carried();
}

std::uint64_t Transfer::bytes() const {
  const auto held = core_->agent().hold();
  return core_->bytes();
}

std::uint64_t Transfer::ops() const {
  const auto held = core_->agent().hold();
  return core_->ops();
}

}  // namespace viaduct
