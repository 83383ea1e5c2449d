#include <viaduct/pin.h>

#include <utility>

#include "agent/peers/peer_impl.h"
#include "agent/pin_impl.h"
#include "base/keep_forever.h"
#include "base/log.h"

namespace viaduct {
namespace agent {

PinImpl::~PinImpl() {
  if (!memory_ || !outcome_ || *outcome_) return;
  const auto held = agent_->hold();
  if (held && !agent_->settled()) base::keepForever(std::move(memory_));
}

Status PinImpl::release() {
  if (outcome_) return *outcome_;
  auto held = agent_->hold();
  if (!held) return Ok{};  // in a fork()ed child the pin belongs to the parent
  // A callback that runs meanwhile may call release() as well.
  outcome_ = Error{.code = Code::kBusy, .operation = "release", .detail = "it is being released"};
  outcome_ = agent_->unpin(info_.slot);
  return *outcome_;
}

}  // namespace agent

Pin::Pin(std::unique_ptr<agent::PinImpl> impl) : impl_(std::move(impl)) {}
Pin::Pin(Pin&&) noexcept = default;

Pin& Pin::operator=(Pin&& other) noexcept {
  Pin old(std::move(*this));
  impl_ = std::move(other.impl_);
  return *this;
}

Pin::~Pin() {
  if (!impl_ || impl_->released()) return;
  if (const auto released = impl_->release(); !released)
    base::log(base::LogLevel::kError, "{}", released.error().text());
}

const PinInfo& Pin::info() const { return impl_->info(); }

Segment Pin::segment() const {
  if (impl_->memory()) return impl_->memory().segment();
  const PinInfo& pinned = info();
  return {.kind = pinned.kind,
          .device = pinned.device,
          .address = pinned.address,
          .bytes = pinned.bytes,
          .access = pinned.access};
}

std::byte* Pin::data() const {
  return info().kind == MemoryKind::kHost
             // NOLINTNEXTLINE(performance-no-int-to-ptr): a registered address becomes memory here
             ? reinterpret_cast<std::byte*>(static_cast<std::uintptr_t>(info().address))
             : nullptr;
}

Status Pin::release() { return impl_->release(); }

}  // namespace viaduct
