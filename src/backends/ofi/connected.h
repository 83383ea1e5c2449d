// An endpoint that is connected to its peer (FI_EP_MSG). Both ends listen; the one whose token is
// the smaller connects. Who does not show the token of this end is turned away: it went over the
// session, which knows who the peer is. Threads: under the agent's lock.
#pragma once

#include <array>

#include "backends/ofi/endpoint.h"

namespace viaduct::ofi {

class Connected final : public Endpoint {
 public:
  static Result<std::unique_ptr<Endpoint>> open(const Ground& ground, fid_cq& queue);

  const Bytes& name() const override { return name_; }
  Status join(std::span<const std::byte> theirs) override;
  fid_ep* ready() const override { return connected_ ? endpoint_.get() : nullptr; }
  fi_addr_t peer() const override { return FI_ADDR_UNSPEC; }
  Status look() override;
  fid_eq* events() const override { return events_.get(); }

 private:
  // Nobody guesses it, and it serves once.
  using Token = std::array<std::uint8_t, 16>;

  Connected(const Ground& ground, fid_cq& queue) : ground_(ground), queue_(queue) {}
  Status listen();
  Status make(fi_info& info);
  Status asked(fi_info& info, std::span<const std::byte> token);
  Status failed();

  const Ground& ground_;
  fid_cq& queue_;
  Token token_{};
  Bytes address_, name_;  // of the listener; with the token before it
  bool connected_ = false;
  Fid<fid_eq> events_;
  Fid<fid_pep> listener_;
  Fid<fid_ep> endpoint_;
};

}  // namespace viaduct::ofi
