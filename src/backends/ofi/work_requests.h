// The work requests of one endpoint: reads, writes, their completions and flushes. The class uses
// neither completion queues nor connections. Threads: as move::Endpoint.
#pragma once

#include <rdma/fi_rma.h>

#include <array>
#include <vector>

#include "backends/ofi/ofi_domain.h"
#include "backends/ofi/remote_key.h"

namespace viaduct::ofi {

class WorkRequests {
 public:
  // `peer`: the peer's address, for endpoints that get it with each request.
  WorkRequests(const EndpointProfile& profile, fid_ep& endpoint, fi_addr_t peer = FI_ADDR_UNSPEC);

  move::Posted post(OpKind kind, std::span<const move::Piece> pieces, const RemoteMemory& there);
  // Call it for each completion; `context` is the completion's op_context.
  void ended(void* context);
  // After a refused request, accepted ones may lack a doorbell and a completion. settle() repeats
  // the front of the last one to get both. True: nothing is missing. Call it after each read of the
  // completion queue.
  bool settle();

  move::Flush flush();
  bool over(const move::Flush& flush);
  static void letGo(move::Flush& flush);

  bool idle() const { return under_way_ == 0; }
  // The negative status with which the provider refused a request for good; 0 if it did not.
  std::int64_t refusal() const { return refusal_; }

 private:
  // The requests between two flushes. `requests` counts those whose completion is missing.
  struct FlushSlot {
    std::uint64_t number = 0;
    std::uint32_t requests = 0, holders = 0;
  };
  // The context of a request with a completion, which covers earlier requests without one.
  struct RequestContext {
    FlushSlot* slot = nullptr;
    std::uint32_t covers = 0;
  };
  // A request that settle() still has to post after a refused one: the first bytes of the last
  // accepted piece, again, with a doorbell and a completion.
  struct Owed {
    bool yes = false;
    OpKind kind = OpKind::kWrite;
    move::Piece piece = {};
    RemoteMemory there = {};
    FlushSlot* slot = nullptr;
  };
  struct How {
    bool tells = false, last = false, inject = false;
  };

  bool request(OpKind kind, const move::Piece& piece, const RemoteMemory& there, How how,
               FlushSlot* slot);
  std::int64_t give(OpKind kind, const move::Piece& piece, const RemoteMemory& there, How how);
  bool injects(OpKind kind, std::uint64_t bytes) const {
    return kind == OpKind::kWrite && bytes <= inject_;
  }
  FlushSlot& slot() { return slots_[last_ % kSlots]; }  // slot of the next requests

  static constexpr std::size_t kSlots = 128;  // more than there are batches in flight

  const EndpointProfile profile_;
  fid_ep& endpoint_;
  const fi_addr_t peer_;
  std::size_t inject_;
  std::vector<RequestContext> contexts_;
  std::vector<RequestContext*> free_;
  std::array<FlushSlot, kSlots> slots_{};
  std::uint64_t first_ = 0, last_ = 0;  // slots with these numbers are in use
  std::uint32_t under_way_ = 0;
  std::uint32_t untold_ = 0;  // requests since the last one with a completion
  Owed owed_;
  std::int64_t refusal_ = 0;
};

}  // namespace viaduct::ofi
