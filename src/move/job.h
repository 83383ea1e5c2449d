// A Work that a rail has taken, until all of its ops have come back. Threads: those of its rail.
#pragma once

#include <list>
#include <optional>

#include "core/op.h"
#include "move/linked_queue.h"

namespace viaduct::move {

class Channel;
class JobTable;

struct Job {
  core::Work work;
  JobTable* table = nullptr;   // of the rail that took it
  Channel* channel = nullptr;  // that carries it
  std::list<Job>::iterator self = {};

  std::size_t next_op = 0;        // the first op that is not posted...
  std::uint64_t offset = 0;       // ...and how much of it is
  std::uint32_t outstanding = 0;  // parts of it that are posted and not confirmed
  core::Moved moved = {};         // confirmed and not reported
  std::uint64_t reported_ops = 0;
  std::optional<Error> why = {};  // set: no more of it is posted, and what is left fails
  bool rail_lost = false;         // why: the way broke
  bool unsettled = false;  // its channel closed here, and the peer has not closed its end yet
  bool reporting = false;  // in the table's list
  bool ended = false;      // its channel has forgotten it
  Job* next = nullptr;     // in the channel's queue

  bool allPosted() const { return next_op == work.ops.size(); }
  bool heldBack() const { return outstanding != 0 || unsettled; }
};

using JobQueue = LinkedQueue<Job>;

}  // namespace viaduct::move
