#include "measure/run/wait_ready.h"

#include <algorithm>
#include <chrono>

namespace viaduct::measure {
namespace {

constexpr std::chrono::milliseconds kLook{100};  // how often the wait checks `stop`

}  // namespace

Status waitReady(const Peer& peer, Deadline until, const base::StopFlag& stop,
                 const base::SayWaiting& waiting, const std::function<Error(const Error&)>& named) {
  base::Waiting aloud(waiting, until.at());
  for (;;) {
    const auto look = std::min(until.at(), Clock::now() + kLook);
    auto ready = peer.ready(look);
    if (ready) return ready;
    if (stop.load()) return Error{.code = Code::kCancelled, .operation = "connect"};
    // An error before the time is up, such as a refusal by the peer, is final.
    if (until.passed() || Clock::now() < look) return named(ready.error());
    if (aloud.isDue()) aloud.tell(named(ready.error()));
  }
}

}  // namespace viaduct::measure
