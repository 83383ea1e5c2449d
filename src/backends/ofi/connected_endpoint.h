// An endpoint that is connected to its peer (FI_EP_MSG). Both ends listen, and the end with the
// smaller token connects. Threads: as move::Endpoint.
#pragma once

#include "backends/ofi/connection_listener.h"
#include "backends/ofi/raw_endpoint.h"

namespace viaduct::ofi {

class ConnectedEndpoint final : public RawEndpoint {
 public:
  static Result<std::unique_ptr<RawEndpoint>> open(const OfiDomain& ofi_domain, fid_domain& domain,
                                                   fid_cq& queue);

  const Bytes& name() const override { return name_; }
  Status join(std::span<const std::byte> theirs) override;
  fid_ep* ready() const override { return connected_ ? endpoint_.get() : nullptr; }
  fi_addr_t peer() const override { return FI_ADDR_UNSPEC; }
  Status look() override;
  EventQueues events() const override {
    return {events_.get(), listener_ ? &listener_->events() : nullptr};
  }

 private:
  ConnectedEndpoint(const OfiDomain& ofi_domain, fid_domain& domain, fid_cq& queue)
      : ofi_domain_(ofi_domain), domain_(domain), queue_(queue) {}
  Status make(fi_info& info);
  Status hear();
  Status failed();

  const OfiDomain& ofi_domain_;
  fid_domain& domain_;
  fid_cq& queue_;
  Bytes name_;  // the listener's token and address
  bool connected_ = false;
  Fid<fid_eq> events_;
  std::unique_ptr<ConnectionListener> listener_;  // null once this end has connected or accepted
  Fid<fid_ep> endpoint_;
};

}  // namespace viaduct::ofi
