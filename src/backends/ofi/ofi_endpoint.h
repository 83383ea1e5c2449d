// A libfabric endpoint with its completion queue and its one peer, for one life of a channel. The
// destructor closes all its sockets and queues. Threads: as move::Endpoint.
#pragma once

#include <viaduct/deadline.h>

#include <memory>
#include <optional>
#include <string>
#include <unordered_map>

#include "backends/ofi/completion_queue.h"
#include "backends/ofi/raw_endpoint.h"
#include "backends/ofi/work_requests.h"

namespace viaduct::ofi {

class OfiEndpoint final : public move::Endpoint {
 public:
  static Result<std::unique_ptr<OfiEndpoint>> open(const OfiDomain& ofi_domain);

  const Bytes& address() const override { return address_; }
  int fd() const override { return queue_->fd(); }
  bool tellsUnarmed() const override { return queue_->tellsUnarmed(); }
  Status join(const Bytes& peer) override;
  const std::string& transport() const override { return ofi_domain_.provider(); }
  const std::string& transportDevices() const override { return ofi_domain_.device(); }

  move::RemoteKey keyOf(std::uint32_t generation, const Bytes& packed) override;
  void retire(std::uint32_t generation) override { keys_.erase(generation); }
  void sweep() override {}  // keys are plain numbers, so there is nothing to free

  move::Posted post(OpKind kind, std::span<const move::Piece> pieces, move::RemoteKey key) override;
  move::Flush flush() override { return work_requests_ ? work_requests_->flush() : move::Flush{}; }
  bool ended(move::Flush& flush) override;
  void letGo(move::Flush& flush) override { WorkRequests::letGo(flush); }
  bool progress() override;
  bool arm() override;
  void disarm() override { queue_->disarm(); }
  std::optional<Error> broken() const override { return broken_; }

 private:
  explicit OfiEndpoint(const OfiDomain& ofi_domain) : ofi_domain_(ofi_domain) {}
  void look();
  void breakWith(Error why);
  void readError();
  void seeRefusal();
  void judgeDeaf();

  const OfiDomain& ofi_domain_;
  Bytes address_;
  std::optional<Error> broken_;
  int unlooked_ = 0;
  bool connected_ = false;  // a work request has completed
  Clock::time_point deaf_since_{};
  std::unordered_map<std::uint32_t, RemoteMemory> keys_;
  std::shared_ptr<fid_domain> domain_;
  std::unique_ptr<CompletionQueue> queue_;
  std::unique_ptr<RawEndpoint> raw_;
  std::unique_ptr<WorkRequests> work_requests_;  // null until the endpoint accepts work requests
};

}  // namespace viaduct::ofi
