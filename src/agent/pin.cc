#include <viaduct/pin.h>

#include <utility>

#include "agent/faces.h"
#include "agent/peer_core.h"
#include "base/log.h"

namespace viaduct {
namespace agent {

Status PinCore::release() {
  if (outcome_) return *outcome_;
  auto held = agent_->hold();
  if (!held) return Ok{};  // in a fork()ed child it is the parent's
  // A callback that runs meanwhile may ask as well.
  outcome_ = Error{.code = Code::kBusy, .operation = "release", .detail = "it is being released"};
  outcome_ = agent_->unpin(held, info_.slot);
  return *outcome_;
}

}  // namespace agent

Pin::Pin(std::unique_ptr<agent::PinCore> core) : core_(std::move(core)) {}
Pin::Pin(Pin&&) noexcept = default;

Pin& Pin::operator=(Pin&& other) noexcept {
  Pin old(std::move(*this));
  core_ = std::move(other.core_);
  return *this;
}

Pin::~Pin() {
  if (!core_ || core_->released()) return;
  if (const auto released = core_->release(); !released)
    base::log(base::LogLevel::kError, "{}", released.error().text());
}

const PinInfo& Pin::info() const { return core_->info(); }

Segment Pin::segment() const {
  if (core_->memory()) return core_->memory().segment();
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

Status Pin::release() { return core_->release(); }

}  // namespace viaduct
