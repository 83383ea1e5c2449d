#include "backends/ofi/connected.h"

#include <rdma/fi_cm.h>

#include <algorithm>

#include "base/net/crypto.h"
#include "base/random.h"

namespace viaduct::ofi {
namespace {

constexpr std::size_t kLongestData = 256;  // of what comes with a request

}  // namespace

Result<std::unique_ptr<Endpoint>> Connected::open(const Ground& ground, fid_cq& queue) {
  std::unique_ptr<Connected> out(new Connected(ground, queue));
  VIADUCT_CHECK(base::fillSecret(out->token_));
  VIADUCT_CHECK(out->listen());
  out->name_ = base::Writer().raw(std::as_bytes(std::span(out->token_))).raw(out->address_).take();
  return std::unique_ptr<Endpoint>(std::move(out));
}

Status Connected::listen() {
  fi_eq_attr how{};
  how.wait_obj = FI_WAIT_FD;
  fid_eq* events = nullptr;
  if (const int rc = fi_eq_open(&ground_.fabric(), &how, &events, nullptr); rc != 0)
    return ofiError(Code::kDevice, "fi_eq_open", rc, ground_.device());
  events_.reset(events);
  fid_pep* listener = nullptr;
  int rc = fi_passive_ep(&ground_.fabric(), &ground_.info(), &listener, nullptr);
  if (rc != 0) return ofiError(Code::kDevice, "fi_passive_ep", rc, ground_.device());
  listener_.reset(listener);
  rc = fi_pep_bind(listener, &events->fid, 0);
  if (rc == 0) rc = fi_listen(listener);
  if (rc != 0) return ofiError(Code::kDevice, "fi_listen", rc, ground_.device());
  VIADUCT_TRY(address_, nameOf(listener->fid, ground_));
  return Ok{};
}

Status Connected::make(fi_info& info) {
  fid_ep* endpoint = nullptr;
  if (const int rc = fi_endpoint(&ground_.domain(), &info, &endpoint, nullptr); rc != 0)
    return ofiError(Code::kDevice, "fi_endpoint", rc, ground_.device());
  endpoint_.reset(endpoint);
  return enable(*endpoint, queue_, events_->fid, ground_);
}

Status Connected::join(std::span<const std::byte> theirs) {
  if (theirs.size() < sizeof(Token)) return refusedName(ground_, "the peer's address is not one");
  const auto token = theirs.first(sizeof(Token)), address = theirs.subspan(sizeof(Token));
  if (!fits(ground_.info().addr_format, address, address_)) return otherKind(ground_);
  const auto mine = std::as_bytes(std::span(token_));
  if (!std::lexicographical_compare(mine.begin(), mine.end(), token.begin(), token.end()))
    return Ok{};
  listener_.reset();
  VIADUCT_CHECK(make(ground_.info()));
  if (const int rc = fi_connect(endpoint_.get(), address.data(), token.data(), token.size());
      rc != 0)
    return ofiError(Code::kPeerLost, "fi_connect", rc, ground_.device());
  return Ok{};
}

// Somebody asks to be connected. An error is of the endpoint; who has no business here is no error.
Status Connected::asked(fi_info& info, std::span<const std::byte> token) {
  const bool known = token.size() >= sizeof(Token) &&
                     base::sameBytes(token.first(sizeof(Token)), std::as_bytes(std::span(token_)));
  if (!known || endpoint_) {
    static_cast<void>(fi_reject(listener_.get(), info.handle, nullptr, 0));
    return Ok{};
  }
  VIADUCT_CHECK(make(info));
  if (const int rc = fi_accept(endpoint_.get(), nullptr, 0); rc != 0)
    return ofiError(Code::kPeerLost, "fi_accept", rc, ground_.device());
  return Ok{};
}

Status Connected::look() {
  alignas(fi_eq_cm_entry) std::array<std::byte, sizeof(fi_eq_cm_entry) + kLongestData> event{};
  const auto& entry = *reinterpret_cast<const fi_eq_cm_entry*>(event.data());
  for (;;) {
    std::uint32_t kind = 0;
    const std::int64_t got = fi_eq_read(events_.get(), &kind, event.data(), event.size(), 0);
    if (got == -FI_EAGAIN) return Ok{};
    if (got == -FI_EAVAIL) {
      VIADUCT_CHECK(failed());
      continue;
    }
    if (got < 0) return ofiError(Code::kDevice, "fi_eq_read", got, ground_.device());
    const bool ours = endpoint_ && entry.fid == &endpoint_->fid;
    if (kind == FI_CONNREQ) {
      const Info info(entry.info);
      VIADUCT_CHECK(asked(
          *info,
          std::span(event).first(static_cast<std::size_t>(got)).subspan(sizeof(fi_eq_cm_entry))));
    } else if (kind == FI_CONNECTED && ours) {
      connected_ = true;
      listener_.reset();
    } else if (kind == FI_SHUTDOWN && ours) {
      Error why = ofiError(Code::kPeerLost, "libfabric endpoint", -FI_ENOTCONN, ground_.device());
      why.cause = kGone;
      return why;
    }
  }
}

// Of somebody who began to connect and went away again: nothing.
Status Connected::failed() {
  fi_eq_err_entry entry{};
  if (fi_eq_readerr(events_.get(), &entry, 0) < 0) return Ok{};
  if (!endpoint_ || entry.fid != &endpoint_->fid) return Ok{};
  Error why = ofiError(Code::kPeerLost, connected_ ? "libfabric endpoint" : "fi_connect",
                       -entry.err, ground_.device());
  why.cause =
      connected_ ? kGone : "nobody listens there any more, or the devices do not reach each other";
  return why;
}

}  // namespace viaduct::ofi
