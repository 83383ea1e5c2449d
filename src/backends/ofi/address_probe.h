// Has the kernel resolve the neighbour (ARP) for a peer's address, by one datagram. If the
// neighbour is unknown, the request that connects over verbs waits for it inside the call, for up
// to seconds. The agent's lock is held meanwhile (docs/gotchas/verbs.md). Threads: as
// move::Endpoint.
#pragma once

#include <viaduct/result.h>

#include <cstddef>
#include <span>

#include "base/fd.h"

namespace viaduct::ofi {

class AddressProbe {
 public:
  // Sends the datagram from our address to the peer's, both of one family. If that is not possible,
  // the probe is over at once, and the attempt to connect reports the reason.
  AddressProbe(std::span<const std::byte> from, std::span<const std::byte> to);
  // False: the neighbour is not known yet. An error: the peer's host does not answer.
  Result<bool> over();

 private:
  base::Fd socket_;
};

}  // namespace viaduct::ofi
