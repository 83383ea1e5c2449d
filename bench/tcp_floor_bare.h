// The floor: plain sockets that move the same blocks. Threads: one per end.
#pragma once

#include <sys/uio.h>

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <vector>

#include "base/fd.h"

namespace viaduct::bench {

struct Block {
  std::byte* at;
  std::size_t bytes;
};
using BlockList = std::vector<Block>;

// A connected pair of loopback sockets, with the backend's socket options.
struct BarePair {
  base::Fd a, b;
  static BarePair make();
};

// Sends all blocks, then waits for one acknowledgement. Spins, and uses up to 1,024 iovecs a call.
void bareSend(int fd, const BlockList& blocks, std::vector<iovec>& scratch);
// Receives all blocks and acknowledges them. False: `stop` came before any byte.
bool bareReceive(int fd, const BlockList& blocks, std::vector<iovec>& scratch,
                 const std::function<bool()>& stop);

// Sends 8 bytes each way over blocking sockets.
void barePing(int fd);
void barePong(int fd);

}  // namespace viaduct::bench
