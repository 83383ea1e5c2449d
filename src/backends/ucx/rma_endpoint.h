// An endpoint that moves data by puts and gets, without the peer's process if the hardware can.
// Threads: as move::Endpoint.
#pragma once

#include <memory>
#include <unordered_map>
#include <vector>

#include "backends/ucx/ucx_endpoint.h"

namespace viaduct::ucx {

class RmaEndpoint final : public UcxEndpoint {
 public:
  static Result<std::unique_ptr<RmaEndpoint>> open(const Context& context);
  ~RmaEndpoint() override;
  RmaEndpoint(const RmaEndpoint&) = delete;
  RmaEndpoint& operator=(const RmaEndpoint&) = delete;

  RemoteKey keyOf(std::uint32_t generation, const Bytes& packed) override;
  void retire(std::uint32_t generation) override;
  void sweep() override;

  Posted post(OpKind kind, std::span<const Piece> pieces, RemoteKey key) override;
  Flush flush() override;
  bool ended(Flush& flush) override;
  void letGo(Flush& flush) override;
  bool progress() override;

 private:
  using UcxEndpoint::UcxEndpoint;
  bool posted(ucs_status_ptr_t request) {
    if (request == nullptr) return true;
    if (UCS_PTR_IS_ERR(request)) return refused(UCS_PTR_STATUS(request));
    ucx_.ucp_request_free(request);  // the operation goes on, and a flush covers it
    return true;
  }
  bool refused(ucs_status_t status);
  void letFirstMessageLeave();

  bool reached_ = false;  // a flush has ended, so the peer's endpoint has answered
  ucp_request_param_t params_{};
  std::unordered_map<std::uint32_t, ucp_rkey_h> keys_;
  std::vector<ucp_rkey_h> retired_;
};

}  // namespace viaduct::ucx
