// Lends memory of this process's GPUs to one peer in another process, and takes it back. Threads:
// any.
#pragma once

#include <viaduct/result.h>

#include <cstdint>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "backends/cuda/pinned_memory.h"
#include "backends/cuda/share_message.h"
#include "base/fd.h"
#include "core/backend.h"

namespace viaduct::cuda {

// A Lender outlives its link, because the peer may keep mappings after the session's end.
class Lender {
 public:
  Lender(std::string peer, core::LinkHost& host) : peer_(std::move(peer)), host_(&host) {}

  // Answers the peer's request for a pin; null: there is no such pin.
  void lend(std::uint64_t number, const PinnedMemory* memory);
  void returned(std::uint64_t number);
  // The owner releases the pin. False: the peer still maps it.
  bool takeBack(std::uint64_t number);
  // Call it when the session has ended.
  void detach();
  // True if the peer maps no released memory and, after the session's end, no memory at all.
  bool settled();
  const std::string& peer() const { return peer_; }

 private:
  Status offer(std::uint64_t number, const PinnedMemory& memory);
  Status send(MemoryOffer offer, const std::vector<base::Fd>& fds);
  bool peerIsGone();

  const std::string peer_;
  std::mutex mutex_;
  core::LinkHost* host_;  // null: the session has ended
  struct LentPin {
    bool recalled = false;                            // the peer was asked to return it
    std::shared_ptr<const DeviceBuffer> buffer = {};  // keeps allocate()d memory while it is lent
  };
  std::map<std::uint64_t, LentPin> lent_;  // pins that the peer may map, by number
  base::Fd lifeline_;  // reports an end of file once the peer has closed its end
};

}  // namespace viaduct::cuda
