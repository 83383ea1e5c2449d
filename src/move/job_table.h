// The only ledger of a rail's works, from post() until all of their ops have come back, and the
// only place that withdraws them. A work is stopped for one of four reasons: its transfer is
// cancelled, a pin that it uses is released, its link closes, or its backend closes. A stopped work
// comes back once nobody touches its memory any more.
//
// A carrier begins parts of a job and counts them in Job::outstanding. When a part ends, the
// carrier counts it in Job::moved or calls stop(). Then it calls settle(). Threads: those of the
// rail; no two rails share a table.
#pragma once

#include <atomic>
#include <chrono>
#include <functional>
#include <map>
#include <memory>
#include <span>
#include <string_view>
#include <utility>
#include <vector>

#include "core/backend.h"
#include "move/job.h"

namespace viaduct::move {

// If it is not 0, tables made from now on have room for only this number of jobs. So a test's
// transfers fill them.
inline std::atomic<std::uint32_t> most_jobs_for_tests{0};

class JobTable {
 public:
  struct Traits {
    // The device in errors, which then also say how many bytes had moved. Empty: errors name no
    // device, because ops come back one by one, and the rail's works may be parts of a post.
    std::string_view device = {};
    std::uint32_t most = 4096;  // jobs at once
    bool both_ends = false;     // the remote pins are pins of this agent as well
    Duration grace = {};        // Settings::grace
  };
  JobTable();
  explicit JobTable(const Traits& traits);
  JobTable(const JobTable&) = delete;
  JobTable& operator=(const JobTable&) = delete;
  ~JobTable() = default;

  // Whether urgent work uses the rail, or has used it within the last second. The rail calls
  // press() for each urgent work, and look() at each poll.
  bool pressed() const { return pressed_; }
  void press(Clock::time_point now) {
    pressed_until_ = now + std::chrono::seconds(1);
    pressed_ = true;
  }
  void look(Clock::time_point now) { pressed_ = now < pressed_until_; }

  bool full() const { return full(Priority::kUrgent); }
  // True: no room for a further job of this class. A quarter of the table takes urgent jobs only,
  // and another quarter takes no background jobs. So jobs of a peer that does not answer leave room
  // for a higher class. Rails to other agents use this.
  bool full(Priority priority) const {
    return jobs_.size() >= traits_.most - traits_.most / 4 * static_cast<std::size_t>(priority);
  }
  bool empty() const { return jobs_.empty(); }
  bool idle() const;  // nothing is outstanding
  // All jobs of a table are of one type. Allocates only if the table has never held as many.
  template <class J = Job>
  J& add(const core::Work& work, Carrier* carrier) {
    if (spare_.empty()) {
      auto made = std::make_shared<J>();
      spare_.push(*made);
      owned_.push_back(std::move(made));
    }
    J& job = static_cast<J&>(spare_.pop());
    std::destroy_at(&job);
    std::construct_at(&job);
    job.work = work;
    job.table = this;
    job.carrier = carrier;
    job.number = ++numbers_;
    job.in_table = static_cast<std::uint32_t>(jobs_.size());
    jobs_.push_back(&job);
    return job;
  }
  std::span<Job* const> jobs() const { return jobs_; }

  // Call it after a part of the job has begun or ended. Ends the job once all parts have ended and
  // no further one begins. Reports its moved ops. The job may be gone afterwards.
  void settle(Job& job);
  // Nothing more of the job begins. It fails with `why`, unless it already has a reason, once
  // nothing is outstanding.
  void stop(Job& job, Error why);
  // Fails the remaining ops of a job that no carrier uses any more.
  void end(Job& job, const Error& why);
  bool hasReports() const { return !reports_.empty(); }
  void takeReports(core::Completions& out) {
    if (!reports_.empty()) flushAll(out);
  }

  // Stops the jobs of this sink.
  void cancel(const core::Sink& sink);
  // Stops the jobs that use this pin of the agent. Returns the carriers with outstanding parts of
  // them.
  std::vector<Carrier*> dropSlot(std::uint32_t slot);
  // Stops the same jobs, and returns the result of Backend::unpin(). After the grace the
  // outstanding jobs count as stuck.
  Status withdraw(std::uint32_t slot, Carrier& carrier);
  // Stops the jobs of a link, or all jobs if `link` is null. Then waits for the carrier until 50 ms
  // or an eighth of the grace are over, whichever is less. False: something is outstanding.
  bool drain(const core::Link* link, Carrier& carrier, const Error& why = cancelled());
  // Stops the jobs of a link, for Link::close(). Jobs with outstanding parts come back too, and
  // count as stuck until these parts have ended.
  void close(const core::Link& link, Carrier& carrier, core::Completions& out,
             const Error& why = cancelled());
  // Whether a carrier may still touch the memory of a job that close() has returned, or of a pin
  // that withdraw() has given up. The function outlives the table.
  std::function<bool()> settling() const;
  bool settled() const { return stuck_->load(std::memory_order_acquire) == 0; }

  // Call it when the channel is closed at both ends. Fails the channel's jobs with rail_lost, so
  // that the agent posts them on another rail. A stopped job keeps its own reason.
  void giveBack(const Carrier& carrier, const Error& why);
  // End the jobs of a link that is over, and whose carriers have forgotten them: release() reports
  // them at the next poll(), take() in `out`.
  void release(const core::Link& link, const Error& why);
  void take(const core::Link& link, const Error& why, core::Completions& out);

 private:
  static Error cancelled();
  bool uses(const Job& job, std::uint32_t slot) const;
  template <class Match>
  bool anyOpen(Match match) const;
  void report(Job& job) {
    if (!std::exchange(job.reporting, true)) reports_.push_back(&job);
  }
  // Reports the finished ops of a job. The table drops a job after its last report.
  void flush(Job& job, core::Completions& out);
  void flushAll(core::Completions& out);
  void flushOf(const core::Link& link, core::Completions& out);
  void fail(Job& job, core::Completions& out);
  void leave(Job& job, core::Completions& out);
  void stick(Job& job);
  void unstick(Job& job);
  void drop(Job& job);

  bool pressed_ = false;
  Clock::time_point pressed_until_ = Clock::time_point::min();
  const Traits traits_;
  std::vector<std::shared_ptr<void>> owned_;
  std::vector<Job*> jobs_;
  JobQueue spare_;
  std::vector<Job*> reports_;
  std::uint64_t numbers_ = 0;
  std::map<std::uint32_t, Clock::time_point> leaving_;  // pins, by slot: since when
  const std::shared_ptr<std::atomic<std::uint32_t>> stuck_ =
      std::make_shared<std::atomic<std::uint32_t>>(0);
};

}  // namespace viaduct::move
