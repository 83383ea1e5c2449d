// One end of the way to a peer. There are two kinds: one that is given the peer's address with each
// order (addressed_endpoint.cc), and one that is connected to it (connected_endpoint.cc). Threads:
// under the agent's lock.
#pragma once

#include <rdma/fi_endpoint.h>

#include <array>
#include <memory>
#include <span>

#include "backends/ofi/ofi_domain.h"

namespace viaduct::ofi {

class RawEndpoint {
 public:
  // Completions of its requests come to `queue`, which is of `domain`; both outlive it.
  static Result<std::unique_ptr<RawEndpoint>> open(const OfiDomain& ofi_domain, fid_domain& domain,
                                                   fid_cq& queue);

  virtual ~RawEndpoint() = default;
  RawEndpoint() = default;
  RawEndpoint(const RawEndpoint&) = delete;
  RawEndpoint& operator=(const RawEndpoint&) = delete;

  virtual const Bytes& name() const = 0;  // for the peer's join()
  virtual Status join(std::span<const std::byte> theirs) = 0;
  // What takes requests, once it does; null: not yet. After look().
  virtual fid_ep* ready() const = 0;
  virtual fi_addr_t peer() const = 0;  // for the requests
  // Sees what has become of the connection; an error: there is none any more.
  virtual Status look() = 0;
  using Events = std::array<fid_eq*, 2>;
  virtual Events events() const = 0;  // that look() reads; null: none
};

// What most likely ended a connection.
inline constexpr auto kGone = "the peer has closed the connection, or the path to it is down";
// Of join(): what the peer has said of its end cannot be used.
Error refusedName(const OfiDomain& ofi_domain, std::string detail);
// The same for a name that does not fit().
Error otherKind(const OfiDomain& ofi_domain);

// Whether the provider may be given this address of a peer's: of the kind of our own, and whole. It
// reads as far as the kind says, whatever came over the wire.
bool fits(std::uint32_t format, std::span<const std::byte> theirs, std::span<const std::byte> ours);
// What libfabric calls an endpoint, or a listener, itself.
Result<Bytes> nameOf(fid& one, const OfiDomain& ofi_domain);
// An endpoint that has been made, with its queue, and with its events or addresses; takes requests.
Status enable(fid_ep& endpoint, fid_cq& queue, fid& other, const OfiDomain& ofi_domain);

}  // namespace viaduct::ofi
