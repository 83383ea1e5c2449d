// What is open of libfabric for one rail: its domain, and the memory that peers reach through it.
// Threads: under the agent's lock.
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

// The longest piece that is ever posted at once.
constexpr std::uint64_t kMostPiece = 1U << 20U;

// How a rail is used: what the provider has promised, as far as the user wants it.
struct EndpointProfile {
  std::size_t inject = 0;   // bytes that a request may carry within itself; 0: none
  bool doorbell = false;    // requests given together share one
  bool ordered = false;     // writes become visible in the order they were given in
  std::uint32_t depth = 0;  // requests under way at most
};
EndpointProfile profileOf(const fi_info& info, const Settings& settings);

// Why a provider cannot be used as it wants to be; empty: it can. For the bits of FI_MR_*.
std::string refusedModes(int mr_mode);

class OfiDomain final : public move::Domain {
 public:
  // `info` is one that fi_getinfo has given, and is copied.
  static Result<std::unique_ptr<OfiDomain>> open(const OfiLibrary& ofi, const fi_info& info,
                                                 const Settings& settings);

  Result<std::unique_ptr<move::Endpoint>> open() const override;
  Result<std::unique_ptr<move::Registration>> add(const MemoryRange& range) const override;

  const OfiLibrary& ofi() const { return ofi_; }
  fi_info& info() const { return *info_; }
  fid_fabric& fabric() const { return *fabric_; }
  // One that shares nothing with it.
  Result<Fid<fid_fabric>> fabricAnew() const;
  // For one endpoint: the rail's, or one of its own where memory is registered for each endpoint.
  Result<std::shared_ptr<fid_domain>> domain() const;
  // Of memory that is; null: it is not.
  RailRegions* regions() const { return regions_.get(); }
  // Endpoints are connected to their peers (FI_EP_MSG), or are told the peer with each request.
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
  std::shared_ptr<fid_domain> domain_;    // of all endpoints; null: each has its own
  std::unique_ptr<RailRegions> regions_;  // then
};

}  // namespace viaduct::ofi
