#include "backends/ofi/connected.h"

#include <algorithm>

namespace viaduct::ofi {

Result<std::unique_ptr<Endpoint>> Connected::open(const Ground& ground, fid_domain& domain,
                                                  fid_cq& queue) {
  std::unique_ptr<Connected> out(new Connected(ground, domain, queue));
  VIADUCT_TRY(out->events_, openEvents(ground, ground.fabric()));
  VIADUCT_TRY(out->listener_, Listener::open(ground));
  const Listener& listener = *out->listener_;
  out->name_ = base::Writer().raw(listener.token()).raw(listener.address()).take();
  return std::unique_ptr<Endpoint>(std::move(out));
}

Status Connected::make(fi_info& info) {
  fid_ep* endpoint = nullptr;
  if (const int rc = fi_endpoint(&domain_, &info, &endpoint, nullptr); rc != 0)
    return ofiError(Code::kDevice, "fi_endpoint", rc, ground_.device());
  endpoint_.reset(endpoint);
  return enable(*endpoint, queue_, events_->fid, ground_);
}

Status Connected::join(std::span<const std::byte> theirs) {
  constexpr std::size_t kToken = sizeof(Listener::Token);
  if (!listener_ || theirs.size() < kToken)
    return refusedName(ground_, "the peer's address is invalid");
  const auto token = theirs.first(kToken), address = theirs.subspan(kToken);
  if (!fits(ground_.info().addr_format, address, listener_->address())) return otherKind(ground_);
  const auto mine = listener_->token();
  if (!std::lexicographical_compare(mine.begin(), mine.end(), token.begin(), token.end()))
    return Ok{};
  listener_.reset();
  VIADUCT_CHECK(make(ground_.info()));
  if (const int rc = fi_connect(endpoint_.get(), address.data(), token.data(), token.size());
      rc != 0)
    return ofiError(Code::kPeerLost, "fi_connect", rc, ground_.device());
  return Ok{};
}

// The peer may have asked to be connected.
Status Connected::hear() {
  VIADUCT_TRY(const Info caller, listener_->caller());
  if (!caller) return Ok{};
  VIADUCT_CHECK(make(*caller));
  if (const int rc = fi_accept(endpoint_.get(), nullptr, 0); rc != 0)
    return ofiError(Code::kPeerLost, "fi_accept", rc, ground_.device());
  listener_.reset();
  return Ok{};
}

Status Connected::look() {
  if (listener_) VIADUCT_CHECK(hear());
  for (;;) {
    Event event;
    const std::int64_t got = event.read(*events_);
    if (got == -FI_EAGAIN) return Ok{};
    if (got == -FI_EAVAIL) {
      VIADUCT_CHECK(failed());
      continue;
    }
    if (got < 0) return ofiError(Code::kDevice, "fi_eq_read", got, ground_.device());
    if (event.kind == FI_CONNECTED) connected_ = true;
    if (event.kind != FI_SHUTDOWN) continue;
    Error why = ofiError(Code::kPeerLost, "libfabric endpoint", -FI_ENOTCONN, ground_.device());
    why.cause = kGone;
    return why;
  }
}

Status Connected::failed() {
  fi_eq_err_entry entry{};
  if (fi_eq_readerr(events_.get(), &entry, 0) < 0) return Ok{};
  Error why = ofiError(Code::kPeerLost, connected_ ? "libfabric endpoint" : "fi_connect",
                       -entry.err, ground_.device());
  why.cause = connected_
                  ? kGone
                  : "no process listens there any more, or the devices do not reach each other";
  return why;
}

}  // namespace viaduct::ofi
