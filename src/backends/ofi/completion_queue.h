// The queue of one endpoint's completions, and a descriptor to sleep on, for it and for what is
// said of the connection. Threads: under the agent's lock.
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
  // Once the endpoint is there.
  Status sleepOnThese(const RawEndpoint::Events& events);
  // Readable when there is something to do, once arm() was true; -1: there is nothing to sleep on.
  int fd() const { return set_ ? set_.get() : own_; }
  // fd() tells of what comes in whether it was armed or not. It costs 2 to 3 us a transfer, so that
  // it is only where libfabric gives nothing else (docs/measured/ofi.md).
  bool tellsUnarmed() const { return wait_ == FI_WAIT_FD; }
  bool arm(const RawEndpoint::Events& events);
  void disarm();

 private:
  explicit CompletionQueue(const OfiDomain& ofi_domain) : ofi_domain_(ofi_domain) {}
  Status watch(int fd, std::uint32_t events);
  bool watchAll();
  int listDescriptors();

  const OfiDomain& ofi_domain_;
  Fid<fid_cq> queue_;
  fi_wait_obj wait_ = FI_WAIT_NONE;
  int own_ = -1;  // with FI_WAIT_FD: the queue's
  base::Fd set_;  // of all that there is to sleep on, where that is more than one
  // With FI_WAIT_POLLFD: the queue's, of which libfabric makes more; those of them in the set.
  std::vector<pollfd> list_;
  std::vector<int> watched_;
};

}  // namespace viaduct::ofi
