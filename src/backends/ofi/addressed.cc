#include "backends/ofi/addressed.h"

namespace viaduct::ofi {

Result<std::unique_ptr<Endpoint>> Addressed::open(const Ground& ground, fid_cq& queue) {
  std::unique_ptr<Addressed> out(new Addressed(ground));
  fi_av_attr how{};
  how.type = ground.info().domain_attr->av_type;
  how.count = 1;
  fid_av* peers = nullptr;
  if (const int rc = fi_av_open(&ground.domain(), &how, &peers, nullptr); rc != 0)
    return ofiError(Code::kDevice, "fi_av_open", rc, ground.device());
  out->peers_.reset(peers);
  fid_ep* endpoint = nullptr;
  if (const int rc = fi_endpoint(&ground.domain(), &ground.info(), &endpoint, nullptr); rc != 0)
    return ofiError(Code::kDevice, "fi_endpoint", rc, ground.device());
  out->endpoint_.reset(endpoint);
  VIADUCT_CHECK(enable(*endpoint, queue, peers->fid, ground));
  VIADUCT_TRY(out->name_, nameOf(endpoint->fid, ground));
  return std::unique_ptr<Endpoint>(std::move(out));
}

Status Addressed::join(std::span<const std::byte> theirs) {
  if (!fits(ground_.info().addr_format, theirs, name_)) return otherKind(ground_);
  if (const int got = fi_av_insert(peers_.get(), theirs.data(), 1, &peer_, 0, nullptr); got != 1)
    return ofiError(Code::kPeerLost, "fi_av_insert", got < 0 ? got : -FI_EINVAL, ground_.device());
  return Ok{};
}

}  // namespace viaduct::ofi
