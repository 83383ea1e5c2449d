#include "backends/ofi/addressed_endpoint.h"

#include "backends/ofi/choose.h"

namespace viaduct::ofi {

Result<std::unique_ptr<RawEndpoint>> AddressedEndpoint::open(const OfiDomain& ofi_domain,
                                                             fid_domain& domain, fid_cq& queue) {
  std::unique_ptr<AddressedEndpoint> out(new AddressedEndpoint(ofi_domain));
  fi_av_attr how{};
  how.type = ofi_domain.info().domain_attr->av_type;
  how.count = 1;
  fid_av* peers = nullptr;
  if (const int rc = fi_av_open(&domain, &how, &peers, nullptr); rc != 0)
    return ofiError(Code::kDevice, "fi_av_open", rc, ofi_domain.device());
  out->peers_.reset(peers);
  fid_ep* endpoint = nullptr;
  if (const int rc = fi_endpoint(&domain, &ofi_domain.info(), &endpoint, nullptr); rc != 0)
    return ofiError(Code::kDevice, "fi_endpoint", rc, ofi_domain.device());
  out->endpoint_.reset(endpoint);
  VIADUCT_CHECK(enable(*endpoint, queue, peers->fid, ofi_domain));
  if (RailRegions* const all = ofi_domain.regions(); all != nullptr) {
    VIADUCT_TRY(out->regions_, all->open(domain, *endpoint));
  }
  VIADUCT_TRY(out->name_, nameOf(endpoint->fid, ofi_domain));
  return std::unique_ptr<RawEndpoint>(std::move(out));
}

Status AddressedEndpoint::join(std::span<const std::byte> theirs) {
  if (!fits(ofi_domain_.info().addr_format, theirs, name_)) return otherKind(ofi_domain_);
  if (const int got = fi_av_insert(peers_.get(), theirs.data(), 1, &peer_, 0, nullptr); got != 1)
    return ofiError(Code::kPeerLost, "fi_av_insert", got < 0 ? got : -FI_EINVAL,
                    ofi_domain_.device());
  const std::uint32_t format = ofi_domain_.info().addr_format;
  const bool internet = format == FI_SOCKADDR_IN || format == FI_SOCKADDR_IN6;
  if (internet && isRdma(ofi_domain_.provider())) probe_.emplace(name_, theirs);
  return Ok{};
}

Status AddressedEndpoint::look() {
  if (!probe_) return Ok{};
  const auto over = probe_->over();
  if (!over) {
    Error why = over.error();
    why.device = ofi_domain_.device();
    why.cause = "the peer's host does not answer on this rail";
    return why;
  }
  if (*over) probe_.reset();
  return Ok{};
}

}  // namespace viaduct::ofi
