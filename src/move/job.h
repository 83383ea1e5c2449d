// A core::Work that a rail has accepted, until all of its ops have come back. Threads: those of its
// rail.
#pragma once

#include <list>
#include <optional>

#include "core/op.h"

namespace viaduct::move {

class Channel;
class JobTable;

struct Job {
  core::Work work;
  JobTable* table = nullptr;   // table of the rail that accepted the work
  Channel* channel = nullptr;  // the channel that carries the job
  std::list<Job>::iterator self = {};

  std::size_t next_op = 0;        // the first op that is not fully posted
  std::uint64_t offset = 0;       // bytes of this op that are posted
  std::uint32_t outstanding = 0;  // posted parts that are not confirmed yet
  core::Moved moved = {};         // confirmed, but not reported to the agent yet
  std::uint64_t reported_ops = 0;
  std::optional<Error> why = {};  // set: nothing more is posted, and the remaining ops fail
  bool rail_lost = false;         // `why` is a failure of the rail, not of the job
  bool unsettled = false;         // the channel is closed here, but not yet at the peer
  bool reporting = false;         // in JobTable::reports_
  bool ended = false;             // no channel uses the job any more; its last report is due
  Job* next = nullptr;            // link of the channel's queue

  bool allPosted() const { return next_op == work.ops.size(); }
  bool heldBack() const { return outstanding != 0 || unsettled; }
};

}  // namespace viaduct::move
