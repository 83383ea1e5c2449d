// The completion queue of one endpoint, and the descriptor that reports its completions and the
// endpoint's connection events. Threads: as move::Endpoint.
#pragma once

#include <poll.h>
#include <rdma/fi_eq.h>

#include <memory>
#include <span>
#include <vector>

#include "backends/ofi/raw_endpoint.h"
#include "base/fd.h"

namespace viaduct::ofi {

class CompletionQueue {
 public:
  static Result<std::unique_ptr<CompletionQueue>> open(const OfiDomain& ofi_domain,
                                                       fid_domain& domain);

  fid_cq& get() const { return *queue_; }
  // Adds the endpoint's event queues to the descriptor. Call it once the endpoint is open.
  Status sleepOnThese(const RawEndpoint::EventQueues& events);
  // Becomes readable at the next event, once arm() has returned true. -1: there is no descriptor.
  int fd() const { return set_ ? set_.get() : own_; }
  // True: fd() reports events whether it is armed or not. This costs 2 to 3 us a transfer, so it is
  // used only if libfabric has nothing else (docs/measured/ofi.md).
  bool tellsUnarmed() const { return wait_ == FI_WAIT_FD; }
  bool arm(const RawEndpoint::EventQueues& events);
  void disarm();

 private:
  explicit CompletionQueue(const OfiDomain& ofi_domain) : ofi_domain_(ofi_domain) {}
  Status watch(int fd, std::uint32_t events);
  bool watchAll();
  int listDescriptors();

  const OfiDomain& ofi_domain_;
  Fid<fid_cq> queue_;
  fi_wait_obj wait_ = FI_WAIT_NONE;
  int own_ = -1;  // if wait_ is FI_WAIT_FD: the queue's descriptor
  base::Fd set_;  // epoll descriptor, for endpoints with event queues
  // If wait_ is FI_WAIT_POLLFD: list_ has all descriptors of the queue, whose number grows.
  // watched_ has those that are in set_.
  std::vector<pollfd> list_;
  std::vector<int> watched_;
};

}  // namespace viaduct::ofi
