// Copies between this process's memory and another's by system call (cross memory attach, CMA).
// Threads: CmaBatch one at a time; CmaTarget and probe() any.
#pragma once

#include <sys/uio.h>
#include <viaduct/result.h>
#include <viaduct/transfer.h>

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>

#include "backends/local/fault.h"
#include "base/fd.h"

namespace viaduct::local {

// The pointer for an address in an op.
inline void* pointerTo(std::uint64_t address) {
  return reinterpret_cast<void*>(address);  // NOLINT(performance-no-int-to-ptr): see above
}

// The process at the other end. The pidfd shows whether `pid` still names it.
struct CmaTarget {
  int pid = 0;
  int pidfd = -1;
};

base::Fd openPidfd(int pid);
bool processIsDead(int pidfd);

// The copies of one chunk, collected for one system call.
class CmaBatch {
 public:
  static constexpr std::size_t kMost = 1024;  // IOV_MAX, for both lists

  bool full() const { return count_ == kMost; }
  void add(std::uint64_t local, std::uint64_t remote, std::uint64_t bytes);
  // Makes the collected copies, and empties the batch. Repeats the system call after partial
  // progress or EINTR; any other error ends it.
  Fault flush(const CmaTarget& target, OpKind kind) {
    return count_ == 0 ? Fault{} : call(target, kind);
  }

 private:
  Fault call(const CmaTarget& target, OpKind kind);
  bool mayBeAnother(const CmaTarget& target);

  std::array<iovec, kMost> local_;
  std::array<iovec, kMost> remote_;
  std::size_t count_ = 0;
  int seen_pid_ = 0;  // the process that was last seen alive, at the tick seen_at_
  std::int64_t seen_at_ = 0;
};

// Reads `expected` at `token` in the target, and writes it to `scratch` there. This proves that the
// pid names our peer, and that the system allows copies in both directions. The error names the
// refused call.
Status probe(const CmaTarget& target, std::uint64_t token, std::uint64_t scratch,
             std::span<const std::uint8_t> expected);

}  // namespace viaduct::local
