#include "backends/ofi/connection_listener.h"

#include "backends/ofi/raw_endpoint.h"
#include "base/net/crypto.h"
#include "base/random.h"

namespace viaduct::ofi {
namespace {

// Reads of the event queue before it is closed. One read accepts a connection, and the next reads
// its request. Two of each, because a second connection may have arrived meanwhile.
constexpr int kLastLooks = 4;

}  // namespace

std::int64_t ConnectionEvent::read(fid_eq& events) {
  return fi_eq_read(&events, &kind, bytes.data(), bytes.size(), 0);
}

const fi_eq_cm_entry& ConnectionEvent::entry() const {
  return *reinterpret_cast<const fi_eq_cm_entry*>(bytes.data());
}

std::span<const std::byte> ConnectionEvent::data(std::int64_t got) const {
  return std::span(bytes).first(static_cast<std::size_t>(got)).subspan(sizeof(fi_eq_cm_entry));
}

Result<Fid<fid_eq>> openEvents(const OfiDomain& ofi_domain, fid_fabric& fabric) {
  fi_eq_attr how{};
  how.wait_obj = FI_WAIT_FD;
  fid_eq* events = nullptr;
  if (const int rc = fi_eq_open(&fabric, &how, &events, nullptr); rc != 0)
    return ofiError(Code::kDevice, "fi_eq_open", rc, ofi_domain.device());
  return Fid<fid_eq>(events);
}

Result<std::unique_ptr<ConnectionListener>> ConnectionListener::open(const OfiDomain& ofi_domain) {
  std::unique_ptr<ConnectionListener> out(new ConnectionListener(ofi_domain));
  VIADUCT_CHECK(base::fillSecret(out->token_));
  VIADUCT_CHECK(out->listen());
  return out;
}

// When the event queue is closed, libfabric leaks the socket of an accepted connection whose
// request was not read. If the queue was never read, connections are still with the kernel, which
// closes them.
ConnectionListener::~ConnectionListener() {
  for (int looks = looked_ ? kLastLooks : 0; looks > 0; --looks)
    for (auto one = caller(); one && *one; one = caller()) turnAway(*one);
}

Status ConnectionListener::listen() {
  VIADUCT_TRY(fabric_, ofi_domain_.fabricAnew());
  VIADUCT_TRY(events_, openEvents(ofi_domain_, *fabric_));
  fid_pep* listener = nullptr;
  int rc = fi_passive_ep(fabric_.get(), &ofi_domain_.info(), &listener, nullptr);
  if (rc != 0) return ofiError(Code::kDevice, "fi_passive_ep", rc, ofi_domain_.device());
  listener_.reset(listener);
  rc = fi_pep_bind(listener, &events_->fid, 0);
  if (rc == 0) rc = fi_listen(listener);
  if (rc != 0) return ofiError(Code::kDevice, "fi_listen", rc, ofi_domain_.device());
  VIADUCT_TRY(address_, nameOf(listener->fid, ofi_domain_));
  return Ok{};
}

void ConnectionListener::turnAway(const Info& caller) {
  static_cast<void>(fi_reject(listener_.get(), caller->handle, nullptr, 0));
}

Result<Info> ConnectionListener::caller() {
  looked_ = true;
  for (;;) {
    ConnectionEvent event;
    const std::int64_t got = event.read(*events_);
    if (got == -FI_EAGAIN) return Info();
    if (got == -FI_EAVAIL) {  // a connection that ended before its request
      fi_eq_err_entry entry{};
      static_cast<void>(fi_eq_readerr(events_.get(), &entry, 0));
      continue;
    }
    if (got < 0) return ofiError(Code::kDevice, "fi_eq_read", got, ofi_domain_.device());
    if (event.kind != FI_CONNREQ) continue;
    Info caller(event.entry().info);
    const auto shown = event.data(got);
    if (shown.size() >= sizeof(ConnectionToken) &&
        base::sameBytes(shown.first(sizeof(ConnectionToken)), token()))
      return caller;
    turnAway(caller);
  }
}

}  // namespace viaduct::ofi
