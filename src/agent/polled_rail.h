// A rail, and who polls it. One that may be polled beside others is polled by one thread at a time,
// with the agent's lock held beside others; what ends there waits for a thread that has the lock
// alone. Threads: pollBeside() beside others, the rest alone.
#pragma once

#include <iterator>

#include "agent/progress_engine.h"
#include "base/mutex.h"
#include "core/backend.h"
#include "core/op.h"

namespace viaduct::agent {

class PolledRail {
 public:
  PolledRail(core::Rail& rail, bool is_beside) : rail_(rail), is_beside_(is_beside) {}

  core::Rail& rail() const { return rail_; }
  bool isBeside() const { return is_beside_; }

  // Another thread that polls it now does so for this one as well.
  RailPass pollBeside() {
    if (!polling_.try_lock()) return {.was_busy = true};
    const RailPass pass = pollOnce();
    polling_.unlock();
    return pass;
  }
  // Gives what has ended, behind what is in `out`.
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
  const bool is_beside_;
  base::Mutex polling_;
  core::Completions ended_ VIADUCT_GUARDED_BY(polling_);
};

}  // namespace viaduct::agent
