#include "move/job_table.h"

#include <algorithm>
#include <string>

#include "move/channel.h"

namespace viaduct::move {

Job& JobTable::add(const core::Work& work) {
  if (spare_.empty()) spare_.emplace_back();
  jobs_.splice(jobs_.end(), spare_, spare_.begin());
  Job& job = jobs_.back();
  job = Job{.work = work, .table = this, .self = std::prev(jobs_.end())};
  return job;
}

void JobTable::flush(Job& job, core::Completions& out) {
  job.reporting = false;
  if (job.moved.ops > 0) {
    job.reported_ops += job.moved.ops;
    job.moved.slice = job.work.slice;
    out.emplace_back(std::exchange(job.moved, {}));
  }
  if (!job.ended) return;
  if (const std::uint64_t left = job.work.ops.size() - job.reported_ops; left > 0)
    out.emplace_back(
        core::Failed{job.work.slice, left, std::move(job.why).value_or(Error{}), job.rail_lost});
  spare_.splice(spare_.begin(), jobs_, job.self);
}

void JobTable::flushAll(core::Completions& out) {
  for (Job* const job : reports_) flush(*job, out);
  reports_.clear();
}

void JobTable::end(Job& job, const Error& why) {
  if (!job.why) job.why = why;
  job.ended = true;
  report(job);
}

void JobTable::cancel(const core::Sink& sink) {
  for (Job& job : jobs_)
    if (job.work.slice.sink == &sink && job.channel != nullptr)
      job.channel->stop(job,
                        {.code = Code::kCancelled, .operation = "transfer", .detail = "cancelled"});
}

std::vector<Channel*> JobTable::dropSlot(std::uint32_t slot) {
  std::vector<Channel*> out;
  const auto uses = [&](const core::Op& op) { return op.local_pin == slot; };
  for (Job& job : jobs_) {
    if (job.channel == nullptr || job.ended) continue;
    if (std::none_of(job.work.ops.begin(), job.work.ops.end(), uses)) continue;
    if (job.outstanding > 0) out.push_back(job.channel);
    job.channel->stop(job, {.code = Code::kDenied,
                            .operation = "transfer",
                            .detail = "local pin " + std::to_string(slot) + " was withdrawn"});
  }
  return out;
}

void JobTable::giveBack(const Channel& channel, const Error& why) {
  for (Job& job : jobs_) {
    if (job.channel != &channel || job.ended) continue;
    job.rail_lost = !job.why;
    end(job, why);
  }
}

void JobTable::release(const core::Link& link, const Error& why) {
  for (Job& job : jobs_) {
    if (job.work.link != &link) continue;
    job.channel = nullptr;
    end(job, why);
  }
}

void JobTable::take(const core::Link& link, const Error& why, core::Completions& out) {
  release(link, why);
  std::vector<Job*> others;
  for (Job* const job : std::exchange(reports_, {}))
    job->work.link == &link ? flush(*job, out) : others.push_back(job);
  reports_ = std::move(others);
}

}  // namespace viaduct::move
