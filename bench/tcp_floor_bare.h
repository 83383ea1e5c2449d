// The floor: plain sockets that move the same blocks. Threads: one per end.
#pragma once

#include <sys/uio.h>
#include <viaduct/blocks.h>

#include <functional>
#include <span>
#include <vector>

#include "base/fd.h"

namespace viaduct::bench {

// A connected pair of loopback sockets, with the backend's socket options.
struct BarePair {
  base::Fd a, b;
  static BarePair make();
};

// Sends all blocks, then waits for one acknowledgement. Spins, and uses up to 1,024 iovecs a call.
void bareSend(int fd, std::span<const Extent> blocks, std::vector<iovec>& scratch);
// Receives all blocks and acknowledges them. False: `stop` came before any byte.
bool bareReceive(int fd, std::span<const Extent> blocks, std::vector<iovec>& scratch,
                 const std::function<bool()>& stop);

// Sends 8 bytes each way over blocking sockets.
void barePing(int fd);
void barePong(int fd);

}  // namespace viaduct::bench
