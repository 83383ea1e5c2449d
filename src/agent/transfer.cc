#include <viaduct/transfer.h>

#include <utility>

#include "agent/peers/peer_impl.h"
#include "agent/traffic/transfer_impl.h"

namespace viaduct {

Transfer::Transfer(std::shared_ptr<agent::TransferImpl> impl) : impl_(std::move(impl)) {}
Transfer::Transfer(Transfer&&) noexcept = default;

Transfer& Transfer::operator=(Transfer&& other) noexcept {
  Transfer old(std::move(*this));
  impl_ = std::move(other.impl_);
  return *this;
}

Transfer::~Transfer() {
  if (!impl_) return;
  if (impl_->running()) {
    cancel();
    static_cast<void>(wait());  // the result is not needed
  }
  // Waits until the thread that ended the transfer no longer uses it.
  if (!impl_->basis().ofThisProcess("end")) return;
  const auto held = impl_->basis().hold();
  const agent::SectionsShut shut(impl_->basis().rails());
}

Status Transfer::post(const PostOptions& options) {
  VIADUCT_CHECK(impl_->basis().usable("post"));
  return impl_->post(options);
}

TransferState Transfer::poll() {
  if (impl_->running() && impl_->basis().usable("poll")) impl_->basis().engine().poll();
  return impl_->state();
}

TransferState Transfer::state() const { return impl_->state(); }

Status Transfer::wait(Deadline until) {
  const auto over = [this] { return !impl_->running(); };
  if (impl_->running()) {
    // A closing agent ends the transfer. Until that end the memory is in use, so wait() waits also
    // while the agent closes.
    VIADUCT_CHECK(impl_->basis().ofThisProcess("wait"));
    if (!impl_->basis().engine().wait(over, until.at(), &impl_->watchers()))
      return Error{.code = Code::kTimeout,
                   .operation = "wait",
                   .detail = "the transfer is still running",
                   .remedy = "wait again, or cancel()"};
  }
  if (impl_->state() == TransferState::kDone) return Ok{};
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
  if (!impl_->basis().usable("cancel")) return;
  const auto held = impl_->basis().hold();
  impl_->cancel();
}

TransferEnd Transfer::end() const {
  const auto held = impl_->basis().hold();
  return impl_->result();
}

Path Transfer::path() const {
  const auto held = impl_->basis().hold();
  const agent::SectionsShut shut(impl_->basis().rails());
  return impl_->path();
}

Path Transfer::carried() const {
  const auto held = impl_->basis().hold();
  const agent::SectionsShut shut(impl_->basis().rails());
  return impl_->carried();
}

std::uint64_t Transfer::bytes() const {
  const auto held = impl_->basis().hold();
  return impl_->bytes();
}

std::uint64_t Transfer::ops() const {
  const auto held = impl_->basis().hold();
  return impl_->ops();
}

}  // namespace viaduct
