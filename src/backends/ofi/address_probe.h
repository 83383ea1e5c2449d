// Has the kernel find the neighbour behind a peer's address, by one datagram that nobody need read.
// The request that connects over verbs waits for that within the call, up to seconds, and the
// agent's lock is held (docs/gotchas/verbs.md); this waits outside of any call. Threads: under the
// agent's lock.
#pragma once

#include <viaduct/result.h>

#include <cstddef>
#include <span>

#include "base/fd.h"

namespace viaduct::ofi {

class AddressProbe {
 public:
  // From an address of ours to one of the peer's, both of the same family. Where there is no such
  // way it is over at once: what is tried next says why.
  AddressProbe(std::span<const std::byte> from, std::span<const std::byte> to);
  // False: not known yet. An error: the peer's host is not there.
  Result<bool> over();

 private:
  base::Fd socket_;
};

}  // namespace viaduct::ofi
