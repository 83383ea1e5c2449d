#include "backends/ucx/ucx_rail.h"

#include <algorithm>
#include <utility>

#include "backends/ucx/ucx_link.h"

namespace viaduct::ucx {
namespace {

// Of one poll(); others wait for the lock meanwhile.
constexpr auto kTurn = std::chrono::microseconds(500);
constexpr std::size_t kMaxJobs = 4096;

}  // namespace

Job& UcxRail::newJob(const core::Work& work) {
  if (spare_.empty()) spare_.emplace_back();
  jobs_.splice(jobs_.end(), spare_, spare_.begin());
  Job& job = jobs_.back();
  job = Job{.work = work, .owner = this, .self = std::prev(jobs_.end())};
  return job;
}

std::size_t UcxRail::post(const core::Work& work) {
  if (work.ops.empty() || jobs_.size() >= kMaxJobs) return 0;
  auto& link = static_cast<UcxLink&>(*work.link);
  Job& job = newJob(work);
  job.channel = link.channelFor(index_);
  if (job.channel == nullptr) {
    job.why = link.whyNot();
    job.rail_lost = link.ready();
    job.ended = true;
    report(job);
    return work.ops.size();
  }
  job.channel->poster().add(job);
  job.channel->push();
  if (job.channel->up()) activate(*job.channel);
  return work.ops.size();
}

void UcxRail::report(Job& job) {
  if (std::exchange(job.reporting, true)) return;
  reports_.push_back(&job);
}

void UcxRail::flush(Job& job, core::Completions& out) {
  job.reporting = false;
  if (job.moved_ops > 0) {
    job.reported_ops += job.moved_ops;
    out.emplace_back(core::Moved{job.work.tag, std::exchange(job.moved_ops, 0),
                                 std::exchange(job.moved_bytes, 0)});
  }
  if (!job.ended) return;
  if (const std::uint64_t left = job.work.ops.size() - job.reported_ops; left > 0)
    out.emplace_back(
        core::Failed{job.work.tag, left, std::move(job.why).value_or(Error{}), job.rail_lost});
  spare_.splice(spare_.begin(), jobs_, job.self);
}

void UcxRail::poll(core::Completions& out) {
  turnAll();
  while (Channel* const broken = firstBroken()) UcxLink::of(*broken).broke(*broken);
  for (Job* const job : reports_) flush(*job, out);
  reports_.clear();
}

void UcxRail::turnAll() {
  if (active_.empty()) return;
  const Hush hush;
  const auto now = Clock::now();
  std::size_t turned = 0;
  do {
    Channel& channel = *active_[turned++];
    if (channel.broke()) continue;
    channel.turn(now, now + kTurn);
    channel.active = !channel.sleep(now);
  } while (turned < active_.size() && Clock::now() < now + kTurn);
  // Those that had no turn are first the next time, so that a busy one starves no other.
  std::rotate(active_.begin(), active_.begin() + static_cast<std::ptrdiff_t>(turned),
              active_.end());
  std::erase_if(active_, [](const Channel* channel) { return !channel->active; });
}

Channel* UcxRail::firstBroken() const {
  const auto found = std::find_if(active_.begin(), active_.end(),
                                  [](const Channel* channel) { return !!channel->broke(); });
  return found == active_.end() ? nullptr : *found;
}

void UcxRail::activate(Channel& channel) {
  if (std::exchange(channel.active, true)) return;
  channel.awake();
  active_.push_back(&channel);
}

void UcxRail::deactivate(Channel& channel) {
  if (std::exchange(channel.active, false)) std::erase(active_, &channel);
}

void UcxRail::cancel(core::Tag tag) {
  for (Job& job : jobs_)
    if (job.work.tag == tag && job.channel != nullptr)
      job.channel->poster().stop(
          job, {.code = Code::kCancelled, .operation = "transfer", .detail = "cancelled"});
}

void UcxRail::release(const UcxLink& link, const Error& why) {
  for (Job& job : jobs_) {
    if (job.work.link != &link) continue;
    if (!job.why) job.why = why;
    job.channel = nullptr;
    job.ended = true;
    report(job);
  }
}

void UcxRail::take(const UcxLink& link, const Error& why, core::Completions& out) {
  for (auto at = jobs_.begin(); at != jobs_.end();) {
    Job& job = *at++;
    if (job.work.link != &link) continue;
    if (!job.why) job.why = why;
    std::erase(reports_, &job);
    job.ended = true;
    flush(job, out);
  }
}

std::vector<Channel*> UcxRail::dropSlot(std::uint32_t slot) {
  std::vector<Channel*> out;
  const auto uses = [&](const core::Op& op) { return op.local_pin == slot; };
  for (Job& job : jobs_) {
    if (job.channel == nullptr || job.ended) continue;
    if (std::none_of(job.work.ops.begin(), job.work.ops.end(), uses)) continue;
    if (job.outstanding > 0) out.push_back(job.channel);
    job.channel->poster().stop(job,
                               {.code = Code::kDenied,
                                .operation = "transfer",
                                .detail = "local pin " + std::to_string(slot) + " was withdrawn"});
  }
  return out;
}

}  // namespace viaduct::ucx
