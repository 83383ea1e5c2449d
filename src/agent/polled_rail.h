// A rail and its poller. A shared rail is polled in shared sections of the agent's lock, by one
// thread at a time. Its completions and events wait here for a thread that holds the lock
// exclusively.
// Threads: pollShared() and pollLowered() in a shared section, all else with the lock held
// exclusively.
#pragma once

#include <atomic>
#include <iterator>

#include "agent/agent_lock.h"
#include "agent/progress_engine.h"
#include "base/mutex.h"
#include "core/backend.h"
#include "core/op.h"

namespace viaduct::agent {

class PolledRail {
 public:
  explicit PolledRail(core::Rail& rail) : rail_(rail) {}

  core::Rail& rail() const { return rail_; }

  // Does nothing while another thread polls the rail. `Shared` proves that the caller holds the
  // agent's lock shared.
  RailPass pollShared(const Shared&) {
    if (!polling_.tryTake()) return {.was_busy = true};
    const RailPass pass = pollOnce();
    polling_.drop();
    return pass;
  }
  // The same for a busy rail in a lowered agent's lock, with the completions appended to `out`.
  // True: the rail has events.
  bool pollLowered(core::Completions& out) {
    if (!polling_.tryTake()) return false;
    rail_.poll(out);
    const bool has_events = rail_.hasEvents();
    polling_.drop();
    return has_events;
  }
  // Appends the completions to `out`. Nobody polls while the lock is held exclusively.
  void takeEnded(core::Completions& out) VIADUCT_UNCHECKED {
    out.insert(out.end(), std::make_move_iterator(ended_.begin()),
               std::make_move_iterator(ended_.end()));
    ended_.clear();
  }
  // Handles the events that polls have found. False: there were none.
  bool handleEvents(core::Completions& out) {
    if (!rail_.hasEvents()) return false;
    takeEnded(out);
    rail_.handleEvents(out);
    return true;
  }

 private:
  RailPass pollOnce() VIADUCT_REQUIRES(polling_) {
    const bool was_busy = rail_.busy();
    if (was_busy) rail_.poll(ended_);
    return {.was_busy = was_busy, .has_ended = !ended_.empty() || rail_.hasEvents()};
  }

  // The right to poll. A thread that does not get it leaves the rail to the thread that has it, so
  // nobody waits.
  class VIADUCT_CAPABILITY("poll") Right {
   public:
    bool tryTake() VIADUCT_TRY_ACQUIRE(true) {
      return !taken_.exchange(true, std::memory_order_acquire);
    }
    void drop() VIADUCT_RELEASE() { taken_.store(false, std::memory_order_release); }

   private:
    std::atomic<bool> taken_{false};
  };

  core::Rail& rail_;
  Right polling_;
  core::Completions ended_ VIADUCT_GUARDED_BY(polling_);
};

}  // namespace viaduct::agent
