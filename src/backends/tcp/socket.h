// Helpers for TCP sockets. Threads: any.
#pragma once

#include <viaduct/result.h>
#include <viaduct/statistics.h>

#include <chrono>
#include <cstddef>

#include "backends/tcp/tcp_address.h"
#include "base/fd.h"

namespace viaduct::tcp {

// Makes a socket that is bound to its source address, and not connected.
Result<base::Fd> socketFrom(const RailSource& from, int family);

// Sets options of a connected socket: TCP_NODELAY, TCP_USER_TIMEOUT and, on one host, congestion
// control by loss. A frequent default, bbr, halves the rate of loopback.
void tune(int fd, std::chrono::milliseconds detect, bool same_host);
// Whether both ends have an address of this host.
bool isLocal(int fd);

// Sets SO_RCVLOWAT: the socket becomes readable only with that many bytes, or at its end.
bool wakeFor(int fd, std::size_t bytes);

// The peer's address; without a family if the socket was reset.
base::SocketAddress remoteAddress(int fd);

// Adds the kernel's figures of a socket to those of its rail.
void add(SocketStatistics& rail, int fd);

// Closes the socket with a reset. The kernels of both ends discard queued bytes.
void reset(base::Fd& fd);

// Call it for a socket that was not read for longer than `detect`. True: unread bytes have waited
// for about that time, or the peer has closed the connection after them.
bool isStale(int fd, std::chrono::milliseconds detect);

}  // namespace viaduct::tcp
