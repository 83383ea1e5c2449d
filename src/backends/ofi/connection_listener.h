// Listens for the connection request of one peer. The peer gets this end's token over the session;
// requests without the token are rejected. Threads: as move::Endpoint.
//
// The listener has its own fabric and event queue. A connection that libfabric has accepted, but
// whose request is unread, points to the listener. That request must not be read after the listener
// is gone (docs/gotchas/libfabric.md).
#pragma once

#include <rdma/fi_cm.h>

#include <array>
#include <span>

#include "backends/ofi/ofi_domain.h"

namespace viaduct::ofi {

// An event of a libfabric event queue about a connection.
struct ConnectionEvent {
  // Returns the result of fi_eq_read; -FI_EAGAIN means that there is no event.
  std::int64_t read(fid_eq& events);
  const fi_eq_cm_entry& entry() const;
  std::span<const std::byte> data(std::int64_t got) const;

  static constexpr std::size_t kMostData = 256;
  std::uint32_t kind = 0;
  alignas(fi_eq_cm_entry) std::array<std::byte, sizeof(fi_eq_cm_entry) + kMostData> bytes{};
};
Result<Fid<fid_eq>> openEvents(const OfiDomain& ofi_domain, fid_fabric& fabric);

class ConnectionListener {
 public:
  // A random secret for one connection.
  using ConnectionToken = std::array<std::uint8_t, 16>;

  static Result<std::unique_ptr<ConnectionListener>> open(const OfiDomain& ofi_domain);
  ~ConnectionListener();
  ConnectionListener(const ConnectionListener&) = delete;
  ConnectionListener& operator=(const ConnectionListener&) = delete;

  std::span<const std::byte> token() const { return std::as_bytes(std::span(token_)); }
  const Bytes& address() const { return address_; }
  fid_eq& events() const { return *events_; }
  // The connection request with the token, to be accepted; null if there is none yet.
  Result<Info> caller();

 private:
  explicit ConnectionListener(const OfiDomain& ofi_domain) : ofi_domain_(ofi_domain) {}
  Status listen();
  void turnAway(const Info& caller);

  const OfiDomain& ofi_domain_;
  ConnectionToken token_{};
  Bytes address_;
  bool looked_ = false;  // the event queue was read, so libfabric may have accepted connections
  Fid<fid_fabric> fabric_;
  Fid<fid_eq> events_;
  Fid<fid_pep> listener_;
};

}  // namespace viaduct::ofi
