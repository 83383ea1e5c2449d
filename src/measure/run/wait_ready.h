// Waits until a peer is ready. Ctrl-C ends the wait, and long waits print messages. Threads: any.
#pragma once

#include <viaduct/peer.h>

#include <functional>

#include "base/stop.h"
#include "base/waiting.h"

namespace viaduct::measure {

// Waits as Peer::ready() does, but also ends once `stop` is set. `named` adds the caller's words to
// the peer's error, for messages of a long wait and for the final error.
Status waitReady(const Peer& peer, Deadline until, const base::StopFlag& stop,
                 const base::SayWaiting& waiting, const std::function<Error(const Error&)>& named);

}  // namespace viaduct::measure
