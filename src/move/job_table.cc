#include "move/job_table.h"

#include <fmt/format.h>

#include <algorithm>
#include <set>

namespace viaduct::move {
namespace {

// The time that close() waits, under the agent's lock.
constexpr std::chrono::milliseconds kLongestClose{50};

JobTable::Traits withMostForTests(JobTable::Traits traits) {
  if (const std::uint32_t most = most_jobs_for_tests; most != 0) traits.most = most;
  return traits;
}

}  // namespace

JobTable::JobTable() : traits_(withMostForTests({})) {}

JobTable::JobTable(const Traits& traits) : traits_(withMostForTests(traits)) {
  jobs_.reserve(traits_.most);
  reports_.reserve(traits_.most);
}

void JobTable::settle(Job& job) {
  job.ended = !job.heldBack() && (job.why.has_value() || job.allPosted());
  if (job.ended) unstick(job);
  if (job.left) {
    if (job.ended) drop(job);
    return;
  }
  if (job.ended && !job.why) job.moved.ops = job.work.ops.size() - job.reported_ops;
  if (job.ended || job.moved.ops > 0) report(job);
}

void JobTable::stop(Job& job, Error why) {
  if (job.why || job.ended) return;
  job.why = std::move(why);
  if (job.carrier != nullptr) job.carrier->stop(job);
  settle(job);
}

void JobTable::end(Job& job, const Error& why) {
  if (!job.why) job.why = why;
  job.ended = true;
  unstick(job);
  report(job);
}

void JobTable::flush(Job& job, core::Completions& out) {
  job.reporting = false;
  if (job.moved.ops > 0) {
    job.reported_ops += job.moved.ops;
    job.moved.slice = job.work.slice;
    out.emplace_back(std::exchange(job.moved, {}));
  }
  if (!job.ended) return;
  fail(job, out);
  drop(job);
}

// Reports the remaining ops of a job as failed, if there are any.
void JobTable::fail(Job& job, core::Completions& out) {
  const std::uint64_t left = job.work.ops.size() - job.reported_ops;
  if (left == 0) return;
  Error why = std::exchange(job.why, std::nullopt).value_or(Error{});
  if (!traits_.device.empty()) {
    std::uint64_t all = 0;
    for (const core::Op& op : job.work.ops) all += op.bytes;
    if (why.device.empty()) why.device = traits_.device;
    why.detail += fmt::format("{}{} of {} bytes had moved", why.detail.empty() ? "" : "; ",
                              job.moved.bytes, all);
  }
  out.emplace_back(core::Failed{job.work.slice, left, std::move(why), job.rail_lost});
}

void JobTable::drop(Job& job) {
  jobs_[job.in_table] = jobs_.back();
  jobs_[job.in_table]->in_table = job.in_table;
  jobs_.pop_back();
  spare_.push(job);
}

void JobTable::flushAll(core::Completions& out) {
  for (Job* const job : reports_) flush(*job, out);
  reports_.clear();
}

void JobTable::flushOf(const core::Link& link, core::Completions& out) {
  std::vector<Job*> others;
  for (Job* const job : std::exchange(reports_, {}))
    job->work.link == &link ? flush(*job, out) : others.push_back(job);
  reports_ = std::move(others);
}

Error JobTable::cancelled() { return {.code = Code::kCancelled, .operation = "transfer"}; }

void JobTable::cancel(const core::Sink& sink) {
  for (Job* const job : jobs_)
    if (job->work.slice.sink == &sink) stop(*job, cancelled());
}

bool JobTable::uses(const Job& job, std::uint32_t slot) const {
  if (job.left) return std::ranges::find(job.pins, slot) != job.pins.end();
  return std::ranges::any_of(job.work.ops, [&](const core::Op& op) {
    return op.local_pin == slot || (traits_.both_ends && op.remote_pin == slot);
  });
}

// Whether a matching job has not ended yet.
template <class Match>
bool JobTable::anyOpen(Match match) const {
  return std::ranges::any_of(jobs_, [&](const Job* job) { return !job->ended && match(*job); });
}

bool JobTable::idle() const {
  return !anyOpen([](const Job&) { return true; });
}

std::vector<Carrier*> JobTable::dropSlot(std::uint32_t slot) {
  std::vector<Carrier*> out;
  for (Job* const job : jobs_) {
    if (job->carrier == nullptr || job->ended || !uses(*job, slot)) continue;
    if (job->outstanding > 0) out.push_back(job->carrier);
    stop(*job, {.code = Code::kDenied,
                .operation = "transfer",
                .detail = "the memory was released during the transfer"});
  }
  return out;
}

Status JobTable::withdraw(std::uint32_t slot, Carrier& carrier) {
  const auto [since, first] = leaving_.try_emplace(slot, Clock::now());
  if (first) dropSlot(slot);
  const auto is_of_pin = [&](const Job& job) { return uses(job, slot); };
  if (anyOpen(is_of_pin)) carrier.progressUntil(Carrier::kNow);
  const bool open = anyOpen(is_of_pin);
  Error why{.code = Code::kBusy,
            .operation = "unpin",
            .detail = "a read or write of the memory has not ended",
            .device = std::string(traits_.device)};
  if (open && Clock::now() < since->second + traits_.grace) return why;
  leaving_.erase(since);
  if (!open) return Ok{};
  for (Job* const job : jobs_)
    if (!job->ended && is_of_pin(*job)) stick(*job);
  why.code = Code::kPeerLost;
  why.remedy = "keep the memory until settled() of Agent::self() is true";
  return why;
}

bool JobTable::drain(const core::Link* link, Carrier& carrier, const Error& why) {
  const auto matches = [&](const Job& job) { return link == nullptr || job.work.link == link; };
  for (Job* const job : jobs_)
    if (matches(*job)) stop(*job, why);
  const auto until = Clock::now() + std::min<Duration>(traits_.grace / 8, kLongestClose);
  bool open = anyOpen(matches);
  for (bool first = true; open && (first || Clock::now() < until); first = false) {
    carrier.progressUntil(until);
    open = anyOpen(matches);
  }
  return !open;
}

void JobTable::close(const core::Link& link, Carrier& carrier, core::Completions& out,
                     const Error& why) {
  const bool drained = drain(&link, carrier, why);
  flushOf(link, out);
  if (drained) return;
  for (Job* const job : jobs_)
    if (job->work.link == &link) leave(*job, out);
}

// Reports the job, and keeps it for its outstanding parts.
void JobTable::leave(Job& job, core::Completions& out) {
  fail(job, out);
  job.why.emplace();
  job.carrier = nullptr;
  std::set<std::uint32_t> pins;
  for (const core::Op& op : job.work.ops) {
    pins.insert(op.local_pin);
    if (traits_.both_ends) pins.insert(op.remote_pin);
  }
  job.pins.assign(pins.begin(), pins.end());
  job.work = {};
  job.next_op = 0;
  job.left = true;
  stick(job);
}

void JobTable::stick(Job& job) {
  if (!std::exchange(job.stuck, true)) stuck_->fetch_add(1, std::memory_order_relaxed);
}

void JobTable::unstick(Job& job) {
  if (std::exchange(job.stuck, false)) stuck_->fetch_sub(1, std::memory_order_release);
}

std::function<bool()> JobTable::settling() const {
  return [stuck = stuck_] { return stuck->load(std::memory_order_acquire) == 0; };
}

void JobTable::giveBack(const Carrier& carrier, const Error& why) {
  for (Job* const job : jobs_) {
    if (job->carrier != &carrier || job->ended) continue;
    job->rail_lost = !job->why;
    end(*job, why);
  }
}

void JobTable::release(const core::Link& link, const Error& why) {
  for (Job* const job : jobs_) {
    if (job->work.link != &link) continue;
    job->carrier = nullptr;
    end(*job, why);
  }
}

void JobTable::take(const core::Link& link, const Error& why, core::Completions& out) {
  release(link, why);
  flushOf(link, out);
}

}  // namespace viaduct::move
