// A rail's libfabric fabric and domain, and the memory that peers reach through it. Threads: under
// the agent's lock.
#pragma once

#include <rdma/fi_domain.h>
#include <viaduct/settings.h>

#include <memory>
#include <string>

#include "backends/ofi/endpoint_regions.h"
#include "backends/ofi/library.h"
#include "backends/ofi/registered_memory.h"
#include "move/endpoint.h"

namespace viaduct::ofi {

// The longest piece of one work request.
constexpr std::uint64_t kMostPiece = 1U << 20U;

// The features of the provider that a rail uses, as far as the user's settings allow them.
struct EndpointProfile {
  std::size_t inject = 0;   // most bytes that a request may contain; 0: do not inject
  bool doorbell = false;    // requests of one batch share a doorbell (FI_MORE)
  bool ordered = false;     // writes become visible in the order of their requests
  std::uint32_t depth = 0;  // most requests in flight
};
EndpointProfile profileOf(const fi_info& info, const Settings& settings);

// The reason why a provider with these FI_MR_* bits cannot be used; empty if it can.
std::string refusedModes(int mr_mode);

class OfiDomain final : public move::Domain {
 public:
  // Copies `info`, which comes from fi_getinfo.
  static Result<std::unique_ptr<OfiDomain>> open(const OfiLibrary& ofi, const fi_info& info,
                                                 const Settings& settings);

  Result<std::unique_ptr<move::Endpoint>> open() const override;
  Result<std::unique_ptr<move::Registration>> add(const MemoryRange& range) const override;

  const OfiLibrary& ofi() const { return ofi_; }
  fi_info& info() const { return *info_; }
  fid_fabric& fabric() const { return *fabric_; }
  // Opens another fabric, which shares nothing with fabric().
  Result<Fid<fid_fabric>> fabricAnew() const;
  // The domain for a new endpoint: the rail's domain, or a new one if memory is registered for each
  // endpoint.
  Result<std::shared_ptr<fid_domain>> domain() const;
  // The rail's memory if it is registered for each endpoint; else null.
  RailRegions* regions() const { return regions_.get(); }
  // True: endpoints are connected to their peers (FI_EP_MSG). False: each request names the peer.
  bool connects() const { return info_->ep_attr->type == FI_EP_MSG; }
  const EndpointProfile& profile() const { return profile_; }
  const std::string& provider() const { return provider_; }  // "tcp"
  const std::string& device() const { return device_; }      // "tcp/eth0"

 private:
  OfiDomain(const OfiLibrary& ofi, Info info, const EndpointProfile& profile);
  Result<std::shared_ptr<fid_domain>> openDomain() const;
  Result<Fid<fid_mr>> registered(const MemoryRange& range) const;

  const OfiLibrary& ofi_;
  Info info_;
  const EndpointProfile profile_;
  const std::string provider_, device_;
  Fid<fid_fabric> fabric_;
  std::shared_ptr<fid_domain> domain_;    // for all endpoints; null if each has its own
  std::unique_ptr<RailRegions> regions_;  // set if each endpoint has its own domain
};

}  // namespace viaduct::ofi
