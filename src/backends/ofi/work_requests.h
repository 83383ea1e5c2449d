// What one endpoint has been asked for: reads and writes, which of them tell of their end, and the
// flushes behind them. Knows nothing of queues and connections. Threads: under the agent's lock.
#pragma once

#include <rdma/fi_rma.h>

#include <array>
#include <vector>

#include "backends/ofi/ofi_domain.h"
#include "backends/ofi/remote_key.h"

namespace viaduct::ofi {

class WorkRequests {
 public:
  // `peer`: for endpoints that are told it with each request.
  WorkRequests(const EndpointProfile& profile, fid_ep& endpoint, fi_addr_t peer = FI_ADDR_UNSPEC);

  move::Posted post(OpKind kind, std::span<const move::Piece> pieces, const RemoteMemory& there);
  // A request that told of its end has ended; `context` is what the provider says of it.
  void ended(void* context);
  // Requests that were refused may leave some that nothing tells of, behind a doorbell that was
  // not rung. True: there are none any more. Call it again after each look at the queue.
  bool settle();

  move::Flush flush();
  bool over(const move::Flush& flush);
  static void letGo(move::Flush& flush);

  bool idle() const { return under_way_ == 0; }
  // What the provider said when it refused a request for good, negative; 0: it has not.
  std::int64_t refusal() const { return refusal_; }

 private:
  // Requests between two flushes; `requests` of them have yet to tell of their end.
  struct Slot {
    std::uint64_t number = 0;
    std::uint32_t requests = 0, holders = 0;
  };
  // Of one request that tells of its end, and with that of the end of those before it.
  struct Ticket {
    Slot* slot = nullptr;
    std::uint32_t covers = 0;
  };
  // The front of the last request, once more: told of, and not followed by any.
  struct Owed {
    bool yes = false;
    OpKind kind = OpKind::kWrite;
    move::Piece piece = {};
    RemoteMemory there = {};
    Slot* slot = nullptr;
  };
  struct How {
    bool tells = false, last = false, inject = false;
  };

  bool request(OpKind kind, const move::Piece& piece, const RemoteMemory& there, How how,
               Slot* slot);
  std::int64_t give(OpKind kind, const move::Piece& piece, const RemoteMemory& there, How how);
  bool injects(OpKind kind, std::uint64_t bytes) const {
    return kind == OpKind::kWrite && bytes <= inject_;
  }
  Slot& slot() { return slots_[last_ % kSlots]; }  // of the requests to come

  static constexpr std::size_t kSlots = 128;  // more than there are batches in flight

  const EndpointProfile profile_;
  fid_ep& endpoint_;
  const fi_addr_t peer_;
  std::size_t inject_;
  std::vector<Ticket> tickets_;
  std::vector<Ticket*> free_;
  std::array<Slot, kSlots> slots_{};
  std::uint64_t first_ = 0, last_ = 0;  // slots with these numbers are in use
  std::uint32_t under_way_ = 0;
  std::uint32_t untold_ = 0;  // since the last request that tells of its end
  Owed owed_;
  std::int64_t refusal_ = 0;
};

}  // namespace viaduct::ofi
