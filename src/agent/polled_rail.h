// A rail and its poller. A shared rail is polled in shared sections of the agent's lock, by one
// thread at a time. Its completions wait here for a thread that holds the lock exclusively.
// Threads: pollShared() in a shared section, all else with the lock held exclusively.
#pragma once

#include <iterator>

#include "agent/agent_lock.h"
#include "agent/progress_engine.h"
#include "base/mutex.h"
#include "core/backend.h"
#include "core/op.h"

namespace viaduct::agent {

class PolledRail {
 public:
  PolledRail(core::Rail& rail, bool is_shared) : rail_(rail), is_shared_(is_shared) {}

  core::Rail& rail() const { return rail_; }
  bool isShared() const { return is_shared_; }

  // Does nothing while another thread polls the rail. `Shared` proves that the caller holds the
  // agent's lock shared.
  RailPass pollShared(const Shared&) {
    if (!polling_.try_lock()) return {.was_busy = true};
    const RailPass pass = pollOnce();
    polling_.unlock();
    return pass;
  }
  // Appends the completions to `out`.
  void takeEnded(core::Completions& out) {
    const base::Lock nobody_polls(polling_);
    out.insert(out.end(), std::make_move_iterator(ended_.begin()),
               std::make_move_iterator(ended_.end()));
    ended_.clear();
  }

 private:
  RailPass pollOnce() VIADUCT_REQUIRES(polling_) {
    const bool was_busy = rail_.busy();
    if (was_busy) rail_.poll(ended_);
    return {.was_busy = was_busy, .has_ended = !ended_.empty()};
  }

  core::Rail& rail_;
  const bool is_shared_;
  base::Mutex polling_;
  core::Completions ended_ VIADUCT_GUARDED_BY(polling_);
};

}  // namespace viaduct::agent
