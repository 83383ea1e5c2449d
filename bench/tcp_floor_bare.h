// The floor: what plain sockets do with the same blocks. Threads: one per end.
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

// A connected pair of loopback sockets, tuned as the backend tunes its own.
struct BarePair {
  base::Fd a, b;
  static BarePair make();
};

// Sends all blocks, then waits for one acknowledgement. Spins; iovecs of up to 1,024.
void bareSend(int fd, const BlockList& blocks, std::vector<iovec>& scratch);
// Receives all blocks and acknowledges; false when `stop` came first and nothing had arrived.
bool bareReceive(int fd, const BlockList& blocks, std::vector<iovec>& scratch,
                 const std::function<bool()>& stop);

// Blocking sockets, 8 bytes there and back.
void barePing(int fd);
void barePong(int fd);

}  // namespace viaduct::bench
