// The few things done to sockets, with the system's reason when they fail. Threads: any.
#pragma once

#include <viaduct/result.h>

#include <chrono>
#include <cstddef>

#include "backends/tcp/tcp_address.h"
#include "base/fd.h"

namespace viaduct::tcp {

// Bound to its source; not yet connected.
Result<base::Fd> socketFrom(const RailSource& from, int family);

// For a connected socket: no delay, the time after which silence is a loss, and congestion control
// by loss where both ends are on this host (bbr, a frequent default, halves loopback).
void tune(int fd, std::chrono::milliseconds detect, bool same_host);
// Both ends have an address of this host.
bool isLocal(int fd);

// With fewer bytes than that in it the socket does not become readable; its end always shows.
bool wakeFor(int fd, std::size_t bytes);

// Of a socket that was reset: no family.
base::SocketAddress remoteAddress(int fd);

// Closes at once: what is queued on either side is thrown away, the peer gets a reset.
void reset(base::Fd& fd);

// For a socket that nobody looked at for longer than `detect`: bytes wait in it that have been
// there for about as long, or behind which the peer has already closed.
bool isStale(int fd, std::chrono::milliseconds detect);

}  // namespace viaduct::tcp
