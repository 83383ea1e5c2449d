// Where one peer comes to be connected. Who does not show the token of this end is turned away: it
// went over the session, which knows who the peer is. The fabric and the queue of events are its
// own: whom libfabric has taken in and not heard yet points to the listener, and must not be heard
// when that is gone (docs/gotchas/libfabric.md). Threads: under the agent's lock.
#pragma once

#include <rdma/fi_cm.h>

#include <array>
#include <span>

#include "backends/ofi/ofi_domain.h"

namespace viaduct::ofi {

// What a queue says of connections.
struct ConnectionEvent {
  // As fi_eq_read says it; -FI_EAGAIN: nothing.
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
  // Nobody guesses it, and it serves once.
  using Token = std::array<std::uint8_t, 16>;

  static Result<std::unique_ptr<ConnectionListener>> open(const OfiDomain& ofi_domain);
  ~ConnectionListener();
  ConnectionListener(const ConnectionListener&) = delete;
  ConnectionListener& operator=(const ConnectionListener&) = delete;

  std::span<const std::byte> token() const { return std::as_bytes(std::span(token_)); }
  const Bytes& address() const { return address_; }
  fid_eq& events() const { return *events_; }
  // Who has shown the token, to be accepted; null: nobody yet.
  Result<Info> caller();

 private:
  explicit ConnectionListener(const OfiDomain& ofi_domain) : ofi_domain_(ofi_domain) {}
  Status listen();
  void turnAway(const Info& caller);

  const OfiDomain& ofi_domain_;
  Token token_{};
  Bytes address_;
  bool looked_ = false;  // libfabric may have taken somebody in
  Fid<fid_fabric> fabric_;
  Fid<fid_eq> events_;
  Fid<fid_pep> listener_;
};

}  // namespace viaduct::ofi
