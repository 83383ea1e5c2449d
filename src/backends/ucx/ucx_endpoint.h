// A UCP worker with its one endpoint, for one life of a channel. The two derived classes move data
// over it: RmaEndpoint by puts and gets, MessageEndpoint by messages. Threads: as move::Endpoint.
#pragma once

#include <viaduct/deadline.h>

#include <optional>
#include <string>

#include "backends/ucx/context.h"
#include "move/endpoint.h"

namespace viaduct::ucx {

using move::Bytes;
using move::Flush;
using move::Piece;
using move::Posted;
using move::RemoteKey;

class UcxEndpoint : public move::Endpoint {
 public:
  ~UcxEndpoint() override = default;
  UcxEndpoint(const UcxEndpoint&) = delete;
  UcxEndpoint& operator=(const UcxEndpoint&) = delete;

  const Bytes& address() const override { return address_; }
  int fd() const override { return fd_; }
  bool tellsUnarmed() const override { return true; }
  Status join(const Bytes& peer) override;
  const std::string& transport() const override { return transport_; }
  const std::string& transportDevices() const override { return transport_devices_; }
  bool arm() override;
  void disarm() override {}
  std::optional<Error> broken() const override { return broken_; }

 protected:
  explicit UcxEndpoint(const Context& context) : context_(context), ucx_(context.ucx()) {}
  Status openWorker();
  // Destructors of derived classes call these two, because UCX may still use the members of the
  // derived class until then.
  void closeEndpoint();
  void closeWorker();
  void breakWith(Error why);
  void breakWith(ucs_status_t status);

  const Context& context_;
  const UcxLibrary& ucx_;
  ucp_worker_h worker_ = nullptr;
  ucp_ep_h ep_ = nullptr;  // null before join()
  Clock::time_point joined_at_{};
  std::optional<Error> broken_;

 private:
  Status readLanes();
  static void failed(void* self, ucp_ep_h endpoint, ucs_status_t status);

  int fd_ = -1;  // belongs to UCX
  Bytes address_;
  std::string transport_, transport_devices_;
};

}  // namespace viaduct::ucx
