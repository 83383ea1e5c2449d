// An endpoint that gets the peer's address with each request (FI_EP_RDM). It has one peer.
// libfabric connects it if necessary. Over RDMA an AddressProbe first finds the peer's host.
// Threads: as move::Endpoint.
#pragma once

#include <optional>

#include "backends/ofi/address_probe.h"
#include "backends/ofi/raw_endpoint.h"

namespace viaduct::ofi {

class AddressedEndpoint final : public RawEndpoint {
 public:
  static Result<std::unique_ptr<RawEndpoint>> open(const OfiDomain& ofi_domain, fid_domain& domain,
                                                   fid_cq& queue);

  const Bytes& name() const override { return name_; }
  Status join(std::span<const std::byte> theirs) override;
  fid_ep* ready() const override {
    return peer_ == FI_ADDR_UNSPEC || probe_ ? nullptr : endpoint_.get();
  }
  fi_addr_t peer() const override { return peer_; }
  Status look() override;
  EventQueues events() const override { return {}; }

 private:
  explicit AddressedEndpoint(const OfiDomain& ofi_domain) : ofi_domain_(ofi_domain) {}

  const OfiDomain& ofi_domain_;
  Bytes name_;
  fi_addr_t peer_ = FI_ADDR_UNSPEC;
  std::optional<AddressProbe> probe_;  // set until the probe is over
  Fid<fid_av> peers_;
  Fid<fid_ep> endpoint_;
  std::unique_ptr<EndpointRegions> regions_;  // set if memory is registered for each endpoint
};

}  // namespace viaduct::ofi
