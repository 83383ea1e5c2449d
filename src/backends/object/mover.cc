#include "backends/object/mover.h"

#include <fmt/format.h>
#include <pthread.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <system_error>
#include <utility>

#include "base/blocked_signals.h"

namespace viaduct::object {
namespace {

Error cancelled(std::string operation) {
  return {.code = Code::kCancelled, .operation = std::move(operation), .device = "object"};
}

// Whether a post with this storage on its remote side, or on its local side, changes the storage.
bool writesStorage(OpKind kind, bool remote) { return (kind == OpKind::kWrite) == remote; }

}  // namespace

Result<std::unique_ptr<Mover>> Mover::open(const Options& options, Duration grace) {
  std::unique_ptr<Mover> out(new Mover(grace));
  out->part_ = options.part;
  out->event_.reset(::eventfd(0, EFD_NONBLOCK | EFD_CLOEXEC));
  if (!out->event_) return systemError(Code::kExhausted, "eventfd", errno);
  VIADUCT_TRY(out->requests_, Requests::open(options, [self = out.get()](const auto& task,
                                                                         std::optional<Error> why) {
                self->taskEnded(task, std::move(why));
              }));
  out->assemblies_.emplace(*out->requests_, options.part,
                           [self = out.get()](unsigned job, std::optional<Error> why) {
                             self->end(job, std::move(why));
                           });
  out->reports_.reserve(kJobs);
  out->taken_.reserve(kJobs);
  out->inbox_.reserve(kJobs);
  const base::BlockedSignals blocked;
  try {
    out->thread_ = std::thread([self = out.get()] {
      ::pthread_setname_np(::pthread_self(), "viaduct-object");
      self->run();
    });
  } catch (const std::system_error& failed) {
    return systemError(Code::kExhausted, "start the thread for objects", failed.code().value());
  }
  return out;
}

Mover::~Mover() {
  if (!thread_.joinable()) return;
  for (Job& job : jobs_) job.stop = true;
  {
    // The thread destroys the requests once it sees the flag.
    const std::lock_guard lock(mutex_);
    stopping_ = true;
    requests_->wake();
  }
  thread_.join();
}

// An error answer to HEAD has no body, so it does not tell a wrong key from a missing right.
Result<ObjectFacts> Mover::look(const s3::ObjectName& name, Deadline until) {
  auto found = ask(Task::head(name), until);
  const bool unclear =
      !found && (found.error().code == Code::kDenied || found.error().code == Code::kNotFound ||
                 found.error().code == Code::kInvalid);
  return unclear ? ask(Task::probe(name), until) : found;
}

void Mover::giveUp(std::uint64_t whole) {
  const std::lock_guard lock(mutex_);
  given_up_.push_back(whole);
  requests_->wake();
}

Result<ObjectFacts> Mover::ask(std::shared_ptr<Task> task, Deadline until) {
  const auto look = std::make_shared<Look>();
  look->task = std::move(task);
  std::unique_lock lock(mutex_);
  asked_.push_back(look);
  requests_->wake();
  const auto answered = [&] { return look->result.has_value(); };
  if (until.at() == Clock::time_point::max())
    reported_.wait(lock, answered);
  else
    reported_.wait_until(lock, until.at(), answered);
  if (look->result) return *look->result;
  look->left = true;
  requests_->wake();
  return Error{.code = Code::kTimeout,
               .operation = look->task->operation(look->task->begin().front()),
               .detail = "no answer came in time",
               .device = "object",
               .cause = "the store is down or slow, or the network to it is",
               .remedy = "check the endpoint, and that the store runs"};
}

void Mover::addPin(std::uint32_t slot, ObjectPin pin) {
  const std::lock_guard lock(mutex_);
  pins_[slot] = std::move(pin);
}

void Mover::dropPin(std::uint32_t slot) {
  const std::lock_guard lock(mutex_);
  const auto at = pins_.find(slot);
  if (at == pins_.end()) return;
  if (at->second.facts->temporary) {
    removals_.push_back(at->second.facts->name);
    requests_->wake();
  }
  pins_.erase(at);
}

bool Mover::post(const core::Work& work) {
  if (used_ == kJobs) return false;
  const auto free = std::ranges::find_if(jobs_, [](const Job& job) { return !job.used; });
  free->work = work;
  free->used = true;
  free->stop = false;
  ++used_;
  {
    const std::lock_guard lock(mutex_);
    inbox_.push_back(static_cast<unsigned>(free - jobs_.begin()));
  }
  requests_->wake();
  return true;
}

// True: no job matches.
template <class Match>
bool Mover::stopWhere(Match match) {
  bool none = true;
  for (Job& job : jobs_)
    if (job.used && match(job.work)) {
      job.stop = true;
      none = false;
    }
  if (!none) requests_->wake();
  return none;
}

void Mover::cancel(const core::Sink& sink) {
  stopWhere([&](const core::Work& work) { return work.slice.sink == &sink; });
}

bool Mover::cancelPin(std::uint32_t slot) {
  return stopWhere([&](const core::Work& work) {
    return std::ranges::any_of(work.ops, [&](const core::Op& op) {
      return op.local_pin == slot || op.remote_pin == slot;
    });
  });
}

void Mover::close(const core::Link* link, core::Completions& out) {
  const auto of_link = [&](const Report& report) { return jobs_[report.job].work.link == link; };
  stopWhere([&](const core::Work& work) { return work.link == link; });
  const auto count = std::ranges::count_if(
      jobs_, [&](const Job& job) { return job.used && job.work.link == link; });
  std::vector<Report> reports;
  {
    std::unique_lock lock(mutex_);
    reported_.wait(lock, [&] { return std::ranges::count_if(reports_, of_link) == count; });
    const auto theirs = std::stable_partition(reports_.begin(), reports_.end(),
                                              [&](const Report& one) { return !of_link(one); });
    reports.assign(std::make_move_iterator(theirs), std::make_move_iterator(reports_.end()));
    reports_.erase(theirs, reports_.end());
  }
  for (const Report& report : reports) complete(report, out);
}

void Mover::poll(core::Completions& out) {
  if (used_ == 0) return;
  {
    const std::lock_guard lock(mutex_);
    taken_.swap(reports_);
  }
  for (const Report& report : taken_) complete(report, out);
  taken_.clear();
}

void Mover::complete(const Report& report, core::Completions& out) {
  Job& job = jobs_[report.job];
  const core::Work& work = job.work;
  std::uint64_t bytes = 0;
  for (const core::Op& op : work.ops) bytes += op.bytes;
  if (report.why)
    out.emplace_back(core::Failed{work.slice, work.ops.size(), *report.why});
  else
    out.emplace_back(core::Moved{work.slice, work.ops.size(), bytes});
  job.used = false;
  --used_;
}

void Mover::drainEvent() const {
  std::uint64_t count = 0;
  [[maybe_unused]] const auto got = ::read(event_.get(), &count, sizeof count);
}

void Mover::run() {
  bool stopping = false;
  auto until = Clock::time_point::max();
  while (true) {
    const bool before = std::exchange(stopping, false);
    takeInbox(stopping);
    if (stopping && !before) until = Clock::now() + grace_;
    // One stop may end several jobs.
    const auto stopped = [this] {
      return std::ranges::find_if(running_,
                                  [this](unsigned index) { return jobs_[index].stop.load(); });
    };
    for (auto at = stopped(); at != running_.end(); at = stopped()) stop(*at);
    if (stopping) assemblies_->giveUpAll();
    if (stopping && (!requests_->tidying() || Clock::now() >= until)) break;
    requests_->turn(until);
  }
  requests_->sayWhatIsLeft();
  requests_.reset();
}

void Mover::takeInbox(bool& stopping) {
  std::vector<unsigned> posts;
  std::vector<std::shared_ptr<Look>> asked;
  std::vector<std::uint64_t> given_up;
  std::vector<s3::ObjectName> removals;
  {
    const std::lock_guard lock(mutex_);
    posts.swap(inbox_);
    inbox_.reserve(kJobs);
    asked.swap(asked_);
    given_up.swap(given_up_);
    removals.swap(removals_);
    stopping = stopping_;
  }
  for (const s3::ObjectName& name : removals) requests_->remove(name);
  for (const auto& look : asked) {
    looks_.push_back(look);
    requests_->add(look->task, nullptr);
  }
  dropLooks();
  for (const unsigned index : posts) begin(index);
  for (const std::uint64_t whole : given_up) assemblies_->giveUp(whole);
}

// Ends the requests that nobody waits for any more, so that they take no connection from others.
void Mover::dropLooks() {
  const std::lock_guard lock(mutex_);
  for (const auto& look : looks_)
    if (look->left) requests_->drop(look->task);
  std::erase_if(looks_, [](const auto& look) { return look->left; });
}

void Mover::begin(unsigned index) {
  Job& job = jobs_[index];
  running_.push_back(index);
  if (job.work.whole != 0) return assemble(index);
  auto tasks = tasksOf(job.work);
  if (!tasks) return end(index, std::move(tasks).error());
  job.tasks = *std::move(tasks);
  job.open = job.tasks.size();
  for (const auto& task : job.tasks) requests_->add(task, &job.stop);
  if (job.open == 0) end(index, std::nullopt);
}

// Begins a work that writes an object together with others.
void Mover::assemble(unsigned index) {
  Job& job = jobs_[index];
  auto groups = groupsOf(job.work);
  if (groups && groups->size() == 1 && groups->begin()->second.writes) {
    Group& group = groups->begin()->second;
    return assemblies_->add(job.work.whole,
                            {index, &job.stop, std::move(group.pin), std::move(group.pieces)});
  }
  const Error why = groups ? Error{.code = Code::kInvalid,
                                   .operation = opKindName(job.work.kind),
                                   .detail = "a work with a number has to write to one object",
                                   .device = "object"}
                           : std::move(groups).error();
  assemblies_->fail(job.work.whole, why);
  end(index, why);
}

Result<std::map<std::uint32_t, Mover::Group>> Mover::groupsOf(const core::Work& work) {
  std::map<std::uint32_t, Group> groups;
  const std::lock_guard lock(mutex_);
  for (const core::Op& op : work.ops) {
    const bool remote = pins_.contains(op.remote_pin);
    const std::uint32_t slot = remote ? op.remote_pin : op.local_pin;
    const auto at = pins_.find(slot);
    const std::uint64_t address = remote ? op.remote : op.local;
    if (at == pins_.end() || address < at->second.address || op.bytes > at->second.bytes ||
        address - at->second.address > at->second.bytes - op.bytes)
      return Error{.code = Code::kDenied,
                   .operation = opKindName(work.kind),
                   .detail = fmt::format("{} bytes at {:#x} are not pinned", op.bytes, address),
                   .device = "object"};
    Group& group = groups[slot];
    group.pin = at->second;
    group.writes = writesStorage(work.kind, remote);
    group.pieces.push_back({address - at->second.address + at->second.offset,
                            remote ? op.local : op.remote, op.bytes});
  }
  return groups;
}

// One task for each object of a post.
Result<std::vector<std::shared_ptr<Task>>> Mover::tasksOf(const core::Work& work) {
  VIADUCT_TRY(auto groups, groupsOf(work));
  std::vector<std::shared_ptr<Task>> out;
  for (auto& [slot, group] : groups) {
    const auto make = group.writes ? &Task::write : &Task::read;
    VIADUCT_TRY(auto task, make(group.pin, std::move(group.pieces), part_));
    out.push_back(std::move(task));
  }
  return out;
}

void Mover::taskEnded(const std::shared_ptr<Task>& task, std::optional<Error> why) {
  const auto look =
      std::ranges::find_if(looks_, [&](const auto& one) { return one->task == task; });
  if (look != looks_.end()) {
    const std::lock_guard lock(mutex_);
    (*look)->result = why ? Result<ObjectFacts>(*std::move(why)) : task->found();
    looks_.erase(look);
    reported_.notify_all();
    return;
  }
  if (assemblies_->taskEnded(task, why)) return;
  const auto at = std::ranges::find_if(running_, [&](unsigned index) {
    return std::ranges::find(jobs_[index].tasks, task) != jobs_[index].tasks.end();
  });
  if (at == running_.end()) return;
  if (why || --jobs_[*at].open == 0) end(*at, std::move(why));
}

void Mover::stop(unsigned index) {
  const core::Work& work = jobs_[index].work;
  if (work.whole != 0) return assemblies_->cancel(work.whole);
  end(index, cancelled(opKindName(work.kind)));
}

// Reports a job. Its memory belongs to its owner again from here on.
void Mover::end(unsigned index, std::optional<Error> why) {
  Job& job = jobs_[index];
  for (const auto& task : job.tasks)
    if (!task->done()) requests_->drop(task);
  job.tasks.clear();
  std::erase(running_, index);
  {
    const std::lock_guard lock(mutex_);
    reports_.push_back({index, std::move(why)});
    reported_.notify_all();
  }
  const std::uint64_t one = 1;
  [[maybe_unused]] const auto written = ::write(event_.get(), &one, sizeof one);
}

}  // namespace viaduct::object
