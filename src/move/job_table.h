// The jobs of one rail, from post() until all of their ops have come back. Threads: those of its
// rail; no two rails share a table.
#pragma once

#include <chrono>
#include <list>
#include <utility>
#include <vector>

#include "core/backend.h"
#include "move/job.h"

namespace viaduct::move {

class JobTable {
 public:
  // Urgent work uses the rail, or has used it within the last second. The rail calls press() for
  // each, and look() at each poll.
  bool pressed() const { return pressed_; }
  void press(Clock::time_point now) {
    pressed_until_ = now + std::chrono::seconds(1);
    pressed_ = true;
  }
  void look(Clock::time_point now) { pressed_ = now < pressed_until_; }

  bool full() const { return jobs_.size() >= kMaxJobs; }
  // Allocates only if the table has never held as many jobs.
  Job& add(const core::Work& work);
  // Has the next poll() report the ops of the job that have ended.
  void report(Job& job) {
    if (!std::exchange(job.reporting, true)) reports_.push_back(&job);
  }
  bool hasReports() const { return !reports_.empty(); }
  void takeReports(core::Completions& out) {
    if (!reports_.empty()) flushAll(out);
  }
  // Fails the remaining ops of the job, with `why` unless the job already has a reason.
  void end(Job& job, const Error& why);

  // Stops the job. It ends when neither end touches its memory any more.
  void cancel(const core::Sink& sink);
  // Stops the jobs that use this local pin. Returns the channels with posted ops of such jobs.
  std::vector<Channel*> dropSlot(std::uint32_t slot);
  // Call it when the channel is closed at both ends. Fails the channel's jobs with rail_lost, so
  // that the agent posts them on another rail. A stopped job keeps its own reason.
  void giveBack(const Channel& channel, const Error& why);
  // End the jobs of a link that is over: release() reports them at the next poll(), take() in
  // `out`.
  void release(const core::Link& link, const Error& why);
  void take(const core::Link& link, const Error& why, core::Completions& out);

 private:
  static constexpr std::size_t kMaxJobs = 4096;
  // Reports the finished ops of a job. The table drops a job after its last report.
  void flush(Job& job, core::Completions& out);
  void flushAll(core::Completions& out);

  bool pressed_ = false;
  Clock::time_point pressed_until_ = Clock::time_point::min();
  std::list<Job> jobs_, spare_;
  std::vector<Job*> reports_;
};

}  // namespace viaduct::move
