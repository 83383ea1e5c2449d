#include "move/fabric_rail.h"

#include <algorithm>
#include <utility>

#include "move/fabric_link.h"

namespace viaduct::move {
namespace {

// Of one poll(); others wait for the lock meanwhile.
constexpr auto kTurn = std::chrono::microseconds(500);
constexpr std::size_t kMaxJobs = 4096;

}  // namespace

Job& FabricRail::newJob(const core::Work& work) {
  if (spare_.empty()) spare_.emplace_back();
  jobs_.splice(jobs_.end(), spare_, spare_.begin());
  Job& job = jobs_.back();
  job = Job{.work = work, .owner = this, .self = std::prev(jobs_.end())};
  return job;
}

std::size_t FabricRail::post(const core::Work& work) {
  if (work.ops.empty() || jobs_.size() >= kMaxJobs) return 0;
  auto& link = static_cast<FabricLink&>(*work.link);
  Job& job = newJob(work);
  job.channel = link.channelFor(index_);
  if (job.channel == nullptr) {
    job.why = link.whyNot(index_);
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

void FabricRail::report(Job& job) {
  if (std::exchange(job.reporting, true)) return;
  reports_.push_back(&job);
}

void FabricRail::flush(Job& job, core::Completions& out) {
  job.reporting = false;
  if (job.moved.ops > 0) {
    job.reported_ops += job.moved.ops;
    job.moved.tag = job.work.tag;
    out.emplace_back(std::exchange(job.moved, {}));
  }
  if (!job.ended) return;
  if (const std::uint64_t left = job.work.ops.size() - job.reported_ops; left > 0)
    out.emplace_back(
        core::Failed{job.work.tag, left, std::move(job.why).value_or(Error{}), job.rail_lost});
  spare_.splice(spare_.begin(), jobs_, job.self);
}

void FabricRail::poll(core::Completions& out) {
  turnAll();
  while (Channel* const broken = firstBroken()) FabricLink::of(*broken).broke(*broken);
  for (Job* const job : reports_) flush(*job, out);
  reports_.clear();
}

void FabricRail::turnAll() {
  if (active_.empty()) return;
  const auto now = poller_.handledAt();
  std::size_t served = 0;
  do {
    Channel& channel = *active_[served++];
    if (channel.broke()) continue;
    channel.progress(now, now + kTurn);
    channel.active = !channel.sleep(now);
  } while (served < active_.size() && Clock::now() < now + kTurn);
  // Channels that were not served come first the next time, so that a busy one starves no other.
  std::rotate(active_.begin(), active_.begin() + static_cast<std::ptrdiff_t>(served),
              active_.end());
  std::erase_if(active_, [](const Channel* channel) { return !channel->active; });
}

Channel* FabricRail::firstBroken() const {
  const auto found = std::find_if(active_.begin(), active_.end(),
                                  [](const Channel* channel) { return !!channel->broke(); });
  return found == active_.end() ? nullptr : *found;
}

void FabricRail::activate(Channel& channel) {
  channel.awake();
  if (!std::exchange(channel.active, true)) active_.push_back(&channel);
}

void FabricRail::deactivate(Channel& channel) {
  if (std::exchange(channel.active, false)) std::erase(active_, &channel);
}

void FabricRail::cancel(core::Tag tag) {
  for (Job& job : jobs_)
    if (job.work.tag == tag && job.channel != nullptr)
      job.channel->poster().stop(
          job, {.code = Code::kCancelled, .operation = "transfer", .detail = "cancelled"});
}

void FabricRail::release(const FabricLink& link, const Error& why) {
  for (Job& job : jobs_) {
    if (job.work.link != &link) continue;
    if (!job.why) job.why = why;
    job.channel = nullptr;
    job.ended = true;
    report(job);
  }
}

void FabricRail::take(const FabricLink& link, const Error& why, core::Completions& out) {
  for (auto at = jobs_.begin(); at != jobs_.end();) {
    Job& job = *at++;
    if (job.work.link != &link) continue;
    if (!job.why) job.why = why;
    std::erase(reports_, &job);
    job.ended = true;
    flush(job, out);
  }
}

std::vector<Channel*> FabricRail::dropSlot(std::uint32_t slot) {
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

}  // namespace viaduct::move
