// One UCP worker with its one endpoint: all that UCX has open for one rail of one life of one peer.
// Threads: under the agent's lock.
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <unordered_map>
#include <vector>

#include "backends/ucx/context.h"
#include "core/fabric/conduit.h"

namespace viaduct::ucx {

using core::fabric::Bytes;
using core::fabric::Flush;
using core::fabric::Piece;
using core::fabric::Posted;
using core::fabric::RemoteKey;

class Conduit final : public core::fabric::Conduit {
 public:
  static Result<std::unique_ptr<Conduit>> open(const Context& context);
  ~Conduit() override;
  Conduit(const Conduit&) = delete;
  Conduit& operator=(const Conduit&) = delete;

  const Bytes& address() const override { return address_; }
  int fd() const override { return fd_; }
  Status join(const Bytes& peer) override;
  const std::string& way() const override { return way_; }
  const std::string& lanes() const override { return lanes_; }

  RemoteKey keyOf(std::uint32_t generation, const Bytes& packed) override;
  void retire(std::uint32_t generation) override;
  void sweep() override;

  Posted post(OpKind kind, std::span<const Piece> pieces, RemoteKey key) override;
  Flush flush() override;
  bool ended(Flush& flush) override;
  void letGo(Flush& flush) override;
  bool progress() override;
  bool arm() override;
  std::optional<Error> broken() const override { return broken_; }

 private:
  explicit Conduit(const Context& context) : context_(context), ucx_(context.ucx()) {}
  bool posted(ucs_status_ptr_t request) {
    if (request == nullptr) return true;
    if (UCS_PTR_IS_ERR(request)) return refused(UCS_PTR_STATUS(request));
    ucx_.ucp_request_free(request);  // it ends by itself, and the flush tells of it
    return true;
  }
  bool refused(ucs_status_t status);
  void breakWith(ucs_status_t status);
  Status readLanes();
  void closeEndpoint();
  static void failed(void* self, ucp_ep_h endpoint, ucs_status_t status);

  const Context& context_;
  const Library& ucx_;
  ucp_worker_h worker_ = nullptr;
  ucp_ep_h endpoint_ = nullptr;
  ucp_request_param_t params_{};
  int fd_ = -1;  // UCX's own
  Bytes address_;
  std::string way_, lanes_;
  std::optional<Error> broken_;
  std::unordered_map<std::uint32_t, ucp_rkey_h> keys_;
  std::vector<ucp_rkey_h> retired_;
};

}  // namespace viaduct::ucx
