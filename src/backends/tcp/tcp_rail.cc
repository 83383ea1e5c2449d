#include "backends/tcp/tcp_rail.h"

#include <algorithm>
#include <utility>

#include "backends/tcp/tcp_link.h"

namespace viaduct::tcp {

namespace {
// Of one poll(); others wait for the lock meanwhile.
constexpr auto kTurn = std::chrono::microseconds(500);
constexpr std::size_t kMaxJobs = 4096;
}  // namespace

Job& TcpRail::newJob(const core::Work& work) {
  if (spare_.empty()) spare_.emplace_back();
  jobs_.splice(jobs_.end(), spare_, spare_.begin());
  Job& job = jobs_.back();
  job = Job{.work = work, .owner = this, .self = std::prev(jobs_.end())};
  return job;
}

std::size_t TcpRail::post(const core::Work& work) {
  if (work.ops.empty() || jobs_.size() >= kMaxJobs) return 0;
  auto& link = static_cast<TcpLink&>(*work.link);
  Job& job = newJob(work);
  DataSocket* const data_socket = link.socketFor(index_);
  if (data_socket == nullptr) {
    job.why = link.unusable();
    job.rail_lost = link.state().phase == core::LinkState::Phase::kReady;
    job.ended = true;
    report(job);
  } else {
    data_socket->add(job);
    data_socket->push();
  }
  return work.ops.size();
}

void TcpRail::report(Job& job) {
  if (std::exchange(job.reporting, true)) return;
  reports_.push_back(&job);
}

void TcpRail::flush(Job& job, core::Completions& out) {
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

void TcpRail::poll(core::Completions& out) {
  turnAll();
  while (DataSocket* const lost = firstLost()) lost->link().lost(*lost);
  for (Job* const job : reports_) flush(*job, out);
  reports_.clear();
}

void TcpRail::turnAll() {
  if (active_.empty()) return;
  const auto now = Clock::now();
  std::size_t served = 0;
  do {
    DataSocket& data_socket = *active_[served++];
    if (!data_socket.lost()) data_socket.progress(now, now + kTurn);
    if (data_socket.lost() || !data_socket.tired(now)) continue;
    data_socket.sleep();
    data_socket.active = data_socket.lost().has_value();
  } while (served < active_.size() && Clock::now() < now + kTurn);
  // Sockets that were not served are first the next time, so that a busy socket starves no other.
  std::rotate(active_.begin(), active_.begin() + static_cast<std::ptrdiff_t>(served),
              active_.end());
  std::erase_if(active_, [](const DataSocket* data_socket) { return !data_socket->active; });
}

DataSocket* TcpRail::firstLost() const {
  const auto found =
      std::find_if(active_.begin(), active_.end(), [](const DataSocket* c) { return !!c->lost(); });
  return found == active_.end() ? nullptr : *found;
}

void TcpRail::activate(DataSocket& data_socket) {
  if (std::exchange(data_socket.active, true)) return;
  data_socket.awake();
  data_socket.link().watch();
  active_.push_back(&data_socket);
}

void TcpRail::deactivate(DataSocket& data_socket) {
  if (std::exchange(data_socket.active, false)) std::erase(active_, &data_socket);
}

void TcpRail::cancel(core::Tag tag) {
  for (Job& job : jobs_)
    if (job.work.tag == tag && job.data_socket != nullptr)
      job.data_socket->stop(
          job, {.code = Code::kCancelled, .operation = "transfer", .detail = "cancelled"});
}

void TcpRail::strand(const DataSocket& data_socket, std::uint32_t socket, std::uint32_t life,
                     const Error& why) {
  for (Job& job : jobs_) {
    if (job.data_socket != &data_socket) continue;
    job.data_socket = nullptr;
    if (job.ended) continue;
    job.rail_lost = !job.why;
    if (!job.why) job.why = why;
    job.lost_socket = socket;
    job.lost_life = life;
    job.outstanding = 0;
  }
}

void TcpRail::release(const TcpLink& link, std::uint32_t socket, std::uint32_t life) {
  for (Job& job : jobs_) {
    if (job.work.link != &link || job.ended || job.data_socket != nullptr) continue;
    if (job.lost_socket != socket || job.lost_life != life) continue;
    job.ended = true;
    report(job);
  }
}

void TcpRail::strand(const TcpLink& link, const Error& why) {
  for (Job& job : jobs_) {
    if (job.work.link != &link || job.ended) continue;
    if (!job.why) job.why = why;
    job.data_socket = nullptr;
    job.outstanding = 0;
  }
}

void TcpRail::release(const TcpLink& link) {
  for (Job& job : jobs_) {
    if (job.work.link != &link) continue;
    job.ended = true;
    report(job);
  }
}

void TcpRail::take(const TcpLink& link, core::Completions& out) {
  for (auto at = jobs_.begin(); at != jobs_.end();) {
    Job& job = *at++;
    if (job.work.link != &link) continue;
    std::erase(reports_, &job);
    job.ended = true;
    flush(job, out);
  }
}

void TcpRail::dropSlot(std::uint32_t slot) {
  const auto uses = [&](const core::Op& op) { return op.local_pin == slot; };
  for (Job& job : jobs_) {
    if (job.data_socket == nullptr || job.why || job.ended) continue;
    if (std::any_of(job.work.ops.begin(), job.work.ops.end(), uses))
      job.data_socket->stop(job,
                            {.code = Code::kDenied,
                             .operation = "transfer",
                             .detail = "local pin " + std::to_string(slot) + " was withdrawn"});
  }
}

}  // namespace viaduct::tcp
