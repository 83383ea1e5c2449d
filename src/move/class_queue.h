// A queue of jobs in the order of their classes. Threads: one at a time.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>

#include "move/job.h"
#include "move/job_table.h"
#include "move/linked_queue.h"
#include "move/shares.h"

namespace viaduct::move {

inline bool isBackground(const Job& job) { return job.work.priority == Priority::kBackground; }

class ClassQueue {
 public:
  bool empty() const { return waiting() == 0; }
  // Whether there is a job to serve now. `background` bytes of background jobs are on their way.
  bool mayServe(std::uint64_t background) const { return servable(background) != 0; }
  // Takes the next job out. Call it only if mayServe() is true.
  Job& pop(std::uint64_t background) { return classes_[shares_.next(servable(background))].pop(); }
  // The first job of the highest class.
  Job& front() { return *classes_[Shares().next(waiting())].front(); }
  // Counts `bytes` bytes of the job as served.
  void served(const Job& job, std::uint64_t bytes) {
    shares_.served(job.work.priority, bytes, waiting());
  }
  void push(Job& job) { classOf(job).push(job); }
  void append(ClassQueue& other) {
    for (std::size_t i = 0; i < kPriorities; ++i) classes_[i].append(other.classes_[i]);
  }
  // Visits all jobs of the job's class, so call it rarely.
  void remove(const Job& job) { classOf(job).remove(job); }

 private:
  // The limit for background bytes on their way while urgent work uses the rail.
  static constexpr std::uint64_t kWindow = 2 * kBackgroundTurn;
  static constexpr std::size_t kLast = kPriorities - 1;

  unsigned waiting() const {
    unsigned out = 0;
    for (std::size_t i = 0; i < kPriorities; ++i)
      out |= static_cast<unsigned>(!classes_[i].empty()) << i;
    return out;
  }
  unsigned servable(std::uint64_t background) const {
    const Job* const last = classes_[kLast].front();
    const bool full = last != nullptr && background >= kWindow && last->table->pressed();
    return full ? waiting() & ~(1U << kLast) : waiting();
  }
  LinkedQueue<Job>& classOf(const Job& job) {
    return classes_[static_cast<std::size_t>(job.work.priority)];
  }

  std::array<LinkedQueue<Job>, kPriorities> classes_;
  Shares shares_;
};

}  // namespace viaduct::move
