// Copies one chunk of a work, inside one entry of the peer's gate (gate.h). Threads: one
// ChunkCopier per thread.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

#include "backends/local/cma.h"
#include "backends/local/fault.h"
#include "backends/local/live_table.h"
#include "backends/local/peer_memory.h"
#include "base/adaptive_copy.h"
#include "core/op.h"

namespace viaduct::local {

// A part of a work: several whole ops or, if `piece` is set, `bytes` of a single op from `skip` on.
struct CopyChunk {
  std::span<const core::Op> ops = {};
  bool piece = false;
  std::uint64_t skip = 0;
  std::uint64_t bytes = 0;  // length of the whole chunk
};

// The common facts of all chunks of a work.
struct CopyWork {
  OpKind kind = OpKind::kWrite;
  PeerMemory* peer = nullptr;
  std::uint64_t born = 0;    // registrations counted at the post; later ones are not usable
  std::uint64_t number = 0;  // number of the post
  std::uint64_t bytes = 0;   // length of the whole work, or a lower bound
  base::AdaptiveCopy::Strategy strategy = base::AdaptiveCopy::Strategy::kPlain;
};

class ChunkCopier {
 public:
  explicit ChunkCopier(const LiveTable& here) : here_(here) {}
  // On return the bytes are visible at the other side, or the fault says why some are not.
  Fault run(const CopyWork& task, const CopyChunk& chunk);

 private:
  struct Cursor;
  template <bool kMaps>
  Fault walk(const CopyWork& task, const CopyChunk& chunk);
  Fault resolve(const CopyWork& task, const core::Op& op, Cursor& at) const;
  template <bool kMaps>
  Fault copy(const CopyWork& task, const RemoteView& view, std::uint64_t local,
             std::uint64_t remote, std::uint64_t bytes);

  const LiveTable& here_;
  CmaBatch batch_;
  base::AdaptiveCopy copies_;
  std::uint64_t task_ = 0;  // the post for which `copies_` was begun
};

}  // namespace viaduct::local
