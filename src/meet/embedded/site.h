// The facts that a member knows about an embedded server, and the functions with which its threads
// wait for that server. Threads: any. The wait functions need the loop's lock held.
#pragma once

#include <viaduct/deadline.h>
#include <viaduct/result.h>

#include <algorithm>
#include <chrono>
#include <condition_variable>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "base/loop.h"
#include "base/net/crypto.h"
#include "base/waiting.h"
#include "meet/meeting.h"
#include "meet/place_options.h"

namespace viaduct::meet::embedded {

using base::Loop;

// The turns in which the connections of this process are set up. If thousands were set up at once,
// each would be too slow for its server. Threads: with the loop's lock held.
class Turns {
 public:
  // Calls `begin` when the turn comes, which may be now. Returns the number of the turn.
  std::uint64_t ask(std::function<void()> begin);
  void end(std::uint64_t turn);  // ends a turn, even before the turn has begun; 0: no turn

 private:
  static constexpr std::size_t kAtOnce = 64;
  std::uint64_t last_ = 0;
  std::size_t running_ = 0;
  std::map<std::uint64_t, std::function<void()>> waiting_;
};

// All clients of one place share a Site, which does not change. All sites of this process share
// the thread of their connections.
struct Site {
  std::string where = {};  // for people
  std::string name_space = {};
  std::vector<std::string> addresses = {};  // the preferred one first
  base::Key token = {};
  base::SayWaiting waiting = {};
  std::shared_ptr<Loop> loop = {};
  std::shared_ptr<Turns> turns = {};
};
using SitePtr = std::shared_ptr<const Site>;

// Opens a site, and connects to no server yet.
Result<SitePtr> openSite(Site site);
// Opens the site that the options describe. Fails for an address that members cannot reach.
Result<SitePtr> siteOf(const PlaceOptions& options);

// The pause between the loss of a meeting place and the first try to reach it again.
inline constexpr std::chrono::milliseconds kReopenAfter{20};

// The outcome of a wait.
enum class Wait : std::uint8_t { kDone, kTimeout, kStopped };

// Checks `stop` in intervals, because a signal handler may set it.
template <class Done>
Wait waitFor(std::condition_variable& changed, Loop::Held& held, Clock::time_point until,
             const StopFlag& stop, Done done) {
  constexpr std::chrono::milliseconds kLook{50};
  while (!done()) {
    const auto now = Clock::now();
    if (stop.load(std::memory_order_relaxed)) return Wait::kStopped;
    if (now >= until) return Wait::kTimeout;
    changed.wait_until(held, std::min(until, now + kLook));
  }
  return Wait::kDone;
}

// Like waitFor(), and tells the user about a long wait. `so_far` makes the error with which the
// wait would end now. `so_far` may release the lock.
template <class Done, class SoFar>
Wait waitAloud(std::condition_variable& changed, Loop::Held& held, Clock::time_point until,
               const StopFlag& stop, base::Waiting& waiting, Done done, SoFar so_far) {
  while (waiting.due() < until) {
    const Wait quiet = waitFor(changed, held, waiting.due(), stop, done);
    if (quiet != Wait::kTimeout) return quiet;
    const Error why = so_far();
    if (done()) return Wait::kDone;
    held.unlock();
    waiting.tell(why);
    held.lock();
  }
  return waitFor(changed, held, until, stop, done);
}

}  // namespace viaduct::meet::embedded
