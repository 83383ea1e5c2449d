#include "backends/ofi/connected_endpoint.h"

#include <algorithm>

namespace viaduct::ofi {

Result<std::unique_ptr<RawEndpoint>> ConnectedEndpoint::open(const OfiDomain& ofi_domain,
                                                             fid_domain& domain, fid_cq& queue) {
  std::unique_ptr<ConnectedEndpoint> out(new ConnectedEndpoint(ofi_domain, domain, queue));
  VIADUCT_TRY(out->events_, openEvents(ofi_domain, ofi_domain.fabric()));
  VIADUCT_TRY(out->listener_, ConnectionListener::open(ofi_domain));
  const ConnectionListener& listener = *out->listener_;
  out->name_ = base::Writer().raw(listener.token()).raw(listener.address()).take();
  return std::unique_ptr<RawEndpoint>(std::move(out));
}

Status ConnectedEndpoint::make(fi_info& info) {
  fid_ep* endpoint = nullptr;
  if (const int rc = fi_endpoint(&domain_, &info, &endpoint, nullptr); rc != 0)
    return ofiError(Code::kDevice, "fi_endpoint", rc, ofi_domain_.device());
  endpoint_.reset(endpoint);
  return enable(*endpoint, queue_, events_->fid, ofi_domain_);
}

Status ConnectedEndpoint::join(std::span<const std::byte> theirs) {
  constexpr std::size_t kToken = sizeof(ConnectionListener::ConnectionToken);
  if (!listener_ || theirs.size() < kToken)
    return refusedName(ofi_domain_, "the peer's address is invalid");
  const auto token = theirs.first(kToken), address = theirs.subspan(kToken);
  if (!fits(ofi_domain_.info().addr_format, address, listener_->address()))
    return otherKind(ofi_domain_);
  const auto mine = listener_->token();
  if (!std::lexicographical_compare(mine.begin(), mine.end(), token.begin(), token.end()))
    return Ok{};
  listener_.reset();
  VIADUCT_CHECK(make(ofi_domain_.info()));
  if (const int rc = fi_connect(endpoint_.get(), address.data(), token.data(), token.size());
      rc != 0)
    return ofiError(Code::kPeerLost, "fi_connect", rc, ofi_domain_.device());
  return Ok{};
}

// Accepts the peer's connection request, if it has arrived.
Status ConnectedEndpoint::hear() {
  VIADUCT_TRY(const Info caller, listener_->caller());
  if (!caller) return Ok{};
  VIADUCT_CHECK(make(*caller));
  if (const int rc = fi_accept(endpoint_.get(), nullptr, 0); rc != 0)
    return ofiError(Code::kPeerLost, "fi_accept", rc, ofi_domain_.device());
  listener_.reset();
  return Ok{};
}

Status ConnectedEndpoint::look() {
  if (listener_) VIADUCT_CHECK(hear());
  for (;;) {
    ConnectionEvent event;
    const std::int64_t got = event.read(*events_);
    if (got == -FI_EAGAIN) return Ok{};
    if (got == -FI_EAVAIL) {
      VIADUCT_CHECK(failed());
      continue;
    }
    if (got < 0) return ofiError(Code::kDevice, "fi_eq_read", got, ofi_domain_.device());
    if (event.kind == FI_CONNECTED) connected_ = true;
    if (event.kind != FI_SHUTDOWN) continue;
    Error why = ofiError(Code::kPeerLost, "libfabric endpoint", -FI_ENOTCONN, ofi_domain_.device());
    why.cause = kGone;
    return why;
  }
}

Status ConnectedEndpoint::failed() {
  fi_eq_err_entry entry{};
  if (fi_eq_readerr(events_.get(), &entry, 0) < 0) return Ok{};
  Error why = ofiError(Code::kPeerLost, connected_ ? "libfabric endpoint" : "fi_connect",
                       -entry.err, ofi_domain_.device());
  why.cause = connected_
                  ? kGone
                  : "no process listens there any more, or the devices do not reach each other";
  return why;
}

}  // namespace viaduct::ofi
