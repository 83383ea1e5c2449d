#include "backends/ofi/addressed.h"

#include "backends/ofi/choose.h"

namespace viaduct::ofi {

Result<std::unique_ptr<Endpoint>> Addressed::open(const Ground& ground, fid_domain& domain,
                                                  fid_cq& queue) {
  std::unique_ptr<Addressed> out(new Addressed(ground));
  fi_av_attr how{};
  how.type = ground.info().domain_attr->av_type;
  how.count = 1;
  fid_av* peers = nullptr;
  if (const int rc = fi_av_open(&domain, &how, &peers, nullptr); rc != 0)
    return ofiError(Code::kDevice, "fi_av_open", rc, ground.device());
  out->peers_.reset(peers);
  fid_ep* endpoint = nullptr;
  if (const int rc = fi_endpoint(&domain, &ground.info(), &endpoint, nullptr); rc != 0)
    return ofiError(Code::kDevice, "fi_endpoint", rc, ground.device());
  out->endpoint_.reset(endpoint);
  VIADUCT_CHECK(enable(*endpoint, queue, peers->fid, ground));
  if (Exposures* const all = ground.exposures(); all != nullptr) {
    VIADUCT_TRY(out->exposure_, all->open(domain, *endpoint));
  }
  VIADUCT_TRY(out->name_, nameOf(endpoint->fid, ground));
  return std::unique_ptr<Endpoint>(std::move(out));
}

Status Addressed::join(std::span<const std::byte> theirs) {
  if (!fits(ground_.info().addr_format, theirs, name_)) return otherKind(ground_);
  if (const int got = fi_av_insert(peers_.get(), theirs.data(), 1, &peer_, 0, nullptr); got != 1)
    return ofiError(Code::kPeerLost, "fi_av_insert", got < 0 ? got : -FI_EINVAL, ground_.device());
  const std::uint32_t format = ground_.info().addr_format;
  const bool internet = format == FI_SOCKADDR_IN || format == FI_SOCKADDR_IN6;
  if (internet && isRdma(ground_.provider())) knock_.emplace(name_, theirs);
  return Ok{};
}

Status Addressed::look() {
  if (!knock_) return Ok{};
  const auto over = knock_->over();
  if (!over) {
    Error why = over.error();
    why.device = ground_.device();
    why.cause = "the peer's host does not answer on this rail";
    return why;
  }
  if (*over) knock_.reset();
  return Ok{};
}

}  // namespace viaduct::ofi
