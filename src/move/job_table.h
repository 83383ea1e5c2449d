// The jobs of one rail, from post() until all of their ops have come back. Threads: those of its
// rail; no two rails share a table.
#pragma once

#include <list>
#include <utility>
#include <vector>

#include "core/backend.h"
#include "move/job.h"

namespace viaduct::move {

class JobTable {
 public:
  bool full() const { return jobs_.size() >= kMaxJobs; }
  // Allocates nothing where as many jobs have been in the table before.
  Job& add(const core::Work& work);
  // Ops of it have ended: at the next poll().
  void report(Job& job) {
    if (!std::exchange(job.reporting, true)) reports_.push_back(&job);
  }
  bool hasReports() const { return !reports_.empty(); }
  void takeReports(core::Completions& out) {
    if (!reports_.empty()) flushAll(out);
  }
  // What is left of it fails, with `why` unless it has a reason of its own.
  void end(Job& job, const Error& why);

  // Its channel ends it, as soon as no end touches its memory any more.
  void cancel(core::Tag tag);
  // Jobs that use this local pin fail; the channels that have some of them under way.
  std::vector<Channel*> dropSlot(std::uint32_t slot);
  // The channel is closed at both ends: its jobs can be posted again, on another rail.
  void giveBack(const Channel& channel, const Error& why);
  // The link is over. release(): its jobs end at the next poll(); take(): they end now.
  void release(const core::Link& link, const Error& why);
  void take(const core::Link& link, const Error& why, core::Completions& out);

 private:
  static constexpr std::size_t kMaxJobs = 4096;
  // Reports what there is; the job is gone after its last report.
  void flush(Job& job, core::Completions& out);
  void flushAll(core::Completions& out);

  std::list<Job> jobs_, spare_;
  std::vector<Job*> reports_;
};

}  // namespace viaduct::move
