// Waiting for a peer to be reached, so that Ctrl-C is heard and the user knows what is awaited.
// Threads: any.
#pragma once

#include <viaduct/peer.h>

#include <functional>

#include "base/stop.h"
#include "base/waiting.h"

namespace viaduct::measure {

// As Peer::ready(), until `stop` is set. `named` puts the peer's error into the caller's words, for
// the lines of a long wait and for the error that ends it.
Status waitReady(const Peer& peer, Deadline until, const base::StopFlag& stop,
                 const base::SayWaiting& waiting, const std::function<Error(const Error&)>& named);

}  // namespace viaduct::measure
