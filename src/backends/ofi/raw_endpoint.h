// libfabric's endpoint for one peer. AddressedEndpoint gets the peer's address with each request;
// ConnectedEndpoint is connected to the peer. Threads: as move::Endpoint.
#pragma once

#include <rdma/fi_endpoint.h>

#include <array>
#include <memory>
#include <span>

#include "backends/ofi/ofi_domain.h"

namespace viaduct::ofi {

class RawEndpoint {
 public:
  // `queue` belongs to `domain`, and gets the completions of the requests. Both outlive the
  // endpoint.
  static Result<std::unique_ptr<RawEndpoint>> open(const OfiDomain& ofi_domain, fid_domain& domain,
                                                   fid_cq& queue);

  virtual ~RawEndpoint() = default;
  RawEndpoint() = default;
  RawEndpoint(const RawEndpoint&) = delete;
  RawEndpoint& operator=(const RawEndpoint&) = delete;

  virtual const Bytes& name() const = 0;  // argument of the peer's join()
  virtual Status join(std::span<const std::byte> theirs) = 0;
  // The libfabric endpoint, once it accepts requests; null before. Call look() first.
  virtual fid_ep* ready() const = 0;
  virtual fi_addr_t peer() const = 0;  // the peer's address for requests
  // Reads connection events. An error means that the connection has failed or ended.
  virtual Status look() = 0;
  using EventQueues = std::array<fid_eq*, 2>;
  virtual EventQueues events()
      const = 0;  // the event queues that look() reads; an entry may be null
};

// The likely cause of the end of a connection.
inline constexpr auto kGone = "the peer has closed the connection, or the path to it is down";
// The error of join() for a peer's name that cannot be used.
Error refusedName(const OfiDomain& ofi_domain, std::string detail);
// The error of join() for a name of another address format.
Error otherKind(const OfiDomain& ofi_domain);

// Whether a peer's address is complete and has the format of ours. A provider must not get an
// address of another format, because it reads as many bytes as its own format has.
bool fits(std::uint32_t format, std::span<const std::byte> theirs, std::span<const std::byte> ours);
// The name that libfabric gives an endpoint or a listener (fi_getname).
Result<Bytes> nameOf(fid& one, const OfiDomain& ofi_domain);
// Binds a new endpoint to its completion queue and to `other`, its event queue or address vector.
// Then enables it.
Status enable(fid_ep& endpoint, fid_cq& queue, fid& other, const OfiDomain& ofi_domain);

}  // namespace viaduct::ofi
