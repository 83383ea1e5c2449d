// A core::Work that a rail has accepted, until all of its ops have come back. A backend that knows
// more of its jobs derives from Job. Threads: those of its rail.
#pragma once

#include <viaduct/deadline.h>

#include <cstdint>
#include <optional>
#include <vector>

#include "core/op.h"
#include "move/linked_queue.h"

namespace viaduct::move {

struct Job;
class JobTable;

// The part of a backend that carries jobs out: a channel, or a rail's queue. A function of the
// JobTable may call the carrier.
class Carrier {
 public:
  // Begins nothing more of the job, whose `why` is set, and ends early what it can. The table ends
  // the job once nothing of it is outstanding.
  virtual void stop(Job& job) = 0;
  static constexpr Clock::time_point kNow{};
  // Makes progress. If nothing can move yet, it may wait for that until the given time. kNow: it
  // does not wait.
  virtual void progressUntil(Clock::time_point /*until*/) {}

 protected:
  ~Carrier() = default;
};

struct Job {
  core::Work work = {};
  JobTable* table = nullptr;      // table of the rail that accepted the work
  Carrier* carrier = nullptr;     // null: no carrier has the job
  std::uint64_t number = 0;       // counts the jobs of the table, from 1
  std::uint32_t in_table = 0;     // index in the table
  std::uint32_t outstanding = 0;  // begun parts that have not ended yet

  std::size_t next_op = 0;   // the first op that is not fully begun
  std::uint64_t offset = 0;  // bytes of this op that are begun
  core::Moved moved = {};    // ended well, but not reported to the agent yet
  std::uint64_t reported_ops = 0;
  std::optional<Error> why = {};         // set: nothing more begins, and the remaining ops fail
  bool rail_lost = false;                // `why` is a failure of the rail, not of the job
  bool unsettled = false;                // the channel is closed here, but not yet at the peer
  bool reporting = false;                // in JobTable::reports_
  bool ended = false;                    // no carrier uses the job any more; its last report is due
  bool left = false;                     // reported although something is outstanding
  bool stuck = false;                    // counted in JobTable::settling()
  std::vector<std::uint32_t> pins = {};  // its pins of the agent, once `left` is set
  Job* next = nullptr;                   // link of the carrier's queue

  bool allPosted() const { return next_op == work.ops.size(); }
  bool hasMore() const { return !why && !allPosted(); }  // something has still to begin
  bool heldBack() const { return outstanding != 0 || unsettled; }
};

using JobQueue = LinkedQueue<Job>;

}  // namespace viaduct::move
