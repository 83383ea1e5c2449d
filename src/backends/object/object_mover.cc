#include "backends/object/object_mover.h"

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

// Whether a post of this kind changes the storage on its remote side or, if not `remote`, on its
// local side.
bool writesStorage(OpKind kind, bool remote) { return (kind == OpKind::kWrite) == remote; }

}  // namespace

ObjectMover::ObjectMover(Duration grace)
    : grace_(grace),
      jobs_(move::JobTable::Traits{
          .device = "object", .most = kMostJobs, .both_ends = true, .grace = grace}) {}

Result<std::unique_ptr<ObjectMover>> ObjectMover::open(const ObjectOptions& options,
                                                       Duration grace) {
  std::unique_ptr<ObjectMover> out(new ObjectMover(grace));
  out->part_ = options.part;
  out->event_.reset(::eventfd(0, EFD_NONBLOCK | EFD_CLOEXEC));
  if (!out->event_) return systemError(Code::kExhausted, "eventfd", errno);
  VIADUCT_TRY(out->requests_, Requests::open(options, [self = out.get()](const auto& task,
                                                                         std::optional<Error> why) {
                self->taskEnded(task, std::move(why));
              }));
  out->assemblies_ = std::make_unique<Assemblies>(
      *out->requests_, options.part, [self = out.get()](move::Job& job, std::optional<Error> why) {
        self->end(static_cast<ObjectJob&>(job), std::move(why));
      });
  out->reports_.reserve(kMostJobs);
  out->taken_.reserve(kMostJobs);
  out->inbox_.reserve(kMostJobs);
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

ObjectMover::~ObjectMover() {
  if (!thread_.joinable()) return;
  jobs_.drain(nullptr, *this);
  {
    // The thread destroys the requests once it sees the flag.
    const std::lock_guard lock(mutex_);
    stopping_ = true;
    requests_->wake();
  }
  thread_.join();
}

// An error answer to HEAD has no body, so it does not tell a wrong key from a missing right.
Result<ObjectFacts> ObjectMover::look(const s3::ObjectName& name, Deadline until) {
  auto found = ask(Task::head(name), until);
  const bool unclear =
      !found && (found.error().code == Code::kDenied || found.error().code == Code::kNotFound ||
                 found.error().code == Code::kInvalid);
  return unclear ? ask(Task::probe(name), until) : found;
}

void ObjectMover::giveUp(std::uint64_t whole) {
  const std::lock_guard lock(mutex_);
  given_up_.push_back(whole);
  requests_->wake();
}

Result<ObjectFacts> ObjectMover::ask(std::shared_ptr<Task> task, Deadline until) {
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
  if (const auto& result = look->result) return *result;
  look->left = true;
  requests_->wake();
  return Error{.code = Code::kTimeout,
               .operation = look->task->operation(look->task->begin().front()),
               .detail = "no answer came in time",
               .device = "object",
               .cause = "the store is down or slow, or the network to it is",
               .remedy = "check the endpoint, and that the store runs"};
}

void ObjectMover::addPin(std::uint32_t slot, ObjectPin pin) {
  const std::lock_guard lock(mutex_);
  pins_[slot] = std::move(pin);
}

void ObjectMover::dropPin(std::uint32_t slot) {
  const std::lock_guard lock(mutex_);
  const auto at = pins_.find(slot);
  if (at == pins_.end()) return;
  if (at->second.facts->temporary) {
    removals_.push_back(at->second.facts->name);
    requests_->wake();
  }
  pins_.erase(at);
}

std::size_t ObjectMover::post(const core::Work& work) {
  if (work.ops.empty() || jobs_.full()) return 0;
  ObjectJob& job = jobs_.add<ObjectJob>(work, this);
  job.next_op = work.ops.size();
  job.outstanding = 1;
  const std::lock_guard lock(mutex_);
  inbox_.push_back(&job);
  requests_->wake();
  return work.ops.size();
}

void ObjectMover::stop(move::Job& job) {
  if (job.outstanding == 0) return;
  static_cast<ObjectJob&>(job).stopped = true;
  requests_->wake();
}

// The thread reads the ops of a stopped job until it reports the job, which it does soon.
void ObjectMover::progressUntil(Clock::time_point until) {
  if (until != kNow) {
    const auto stopped = std::ranges::count_if(
        jobs_.jobs(), [](const move::Job* job) { return job->why && job->outstanding != 0; });
    std::unique_lock lock(mutex_);
    reported_.wait(lock, [&] {
      return std::ranges::count_if(
                 reports_, [](const Report& one) { return one.job->why.has_value(); }) == stopped;
    });
  }
  takeReports();
}

void ObjectMover::poll(core::Completions& out) {
  if (jobs_.empty()) return;
  takeReports();
  jobs_.takeReports(out);
}

void ObjectMover::takeReports() {
  {
    const std::lock_guard lock(mutex_);
    taken_.swap(reports_);
  }
  for (Report& report : taken_) {
    ObjectJob& job = *report.job;
    job.outstanding = 0;
    if (report.why) jobs_.stop(job, *std::move(report.why));
    if (!job.why)
      for (const core::Op& op : job.work.ops) job.moved.bytes += op.bytes;
    jobs_.settle(job);
  }
  taken_.clear();
}

void ObjectMover::drainEvent() const {
  std::uint64_t count = 0;
  [[maybe_unused]] const auto got = ::read(event_.get(), &count, sizeof count);
}

void ObjectMover::run() {
  bool stopping = false;
  auto until = Clock::time_point::max();
  while (true) {
    const bool before = std::exchange(stopping, false);
    takeInbox(stopping);
    if (stopping && !before) until = Clock::now() + grace_;
    // One stop may end several jobs.
    const auto stopped = [this] {
      return std::ranges::find_if(running_,
                                  [](const ObjectJob* job) { return job->stopped.load(); });
    };
    for (auto at = stopped(); at != running_.end(); at = stopped()) endStopped(**at);
    if (stopping) assemblies_->giveUpAll();
    if (stopping && (!requests_->tidying() || Clock::now() >= until)) break;
    requests_->turn(until);
  }
  requests_->sayWhatIsLeft();
  requests_.reset();
}

void ObjectMover::takeInbox(bool& stopping) {
  std::vector<ObjectJob*> posts;
  std::vector<std::shared_ptr<Look>> asked;
  std::vector<std::uint64_t> given_up;
  std::vector<s3::ObjectName> removals;
  {
    const std::lock_guard lock(mutex_);
    posts.swap(inbox_);
    inbox_.reserve(kMostJobs);
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
  for (ObjectJob* const job : posts) begin(*job);
  for (const std::uint64_t whole : given_up) assemblies_->giveUp(whole);
}

// Ends the requests that nobody waits for any more, so that they take no connection from others.
void ObjectMover::dropLooks() {
  const std::lock_guard lock(mutex_);
  for (const auto& look : looks_)
    if (look->left) requests_->drop(look->task);
  std::erase_if(looks_, [](const auto& look) { return look->left; });
}

void ObjectMover::begin(ObjectJob& job) {
  running_.push_back(&job);
  if (job.work.whole != 0) return assemble(job);
  auto tasks = tasksOf(job.work);
  if (!tasks) return end(job, std::move(tasks).error());
  job.tasks = *std::move(tasks);
  job.open = job.tasks.size();
  for (const auto& task : job.tasks) requests_->add(task, &job.stopped);
  if (job.open == 0) end(job, std::nullopt);
}

// Begins a work that writes an object together with other works.
void ObjectMover::assemble(ObjectJob& job) {
  auto groups = groupsOf(job.work);
  if (groups && groups->size() == 1 && groups->begin()->second.writes) {
    ObjectPieces& group = groups->begin()->second;
    return assemblies_->add(job.work.whole,
                            {&job, &job.stopped, std::move(group.pin), std::move(group.pieces)});
  }
  const Error why = groups ? Error{.code = Code::kInvalid,
                                   .operation = opKindName(job.work.kind),
                                   .detail = "a work with a number has to write to one object",
                                   .device = "object"}
                           : std::move(groups).error();
  assemblies_->fail(job.work.whole, why);
  end(job, why);
}

Result<std::map<std::uint32_t, ObjectMover::ObjectPieces>> ObjectMover::groupsOf(
    const core::Work& work) {
  std::map<std::uint32_t, ObjectPieces> groups;
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
    ObjectPieces& group = groups[slot];
    group.pin = at->second;
    group.writes = writesStorage(work.kind, remote);
    group.pieces.push_back({address - at->second.address + at->second.offset,
                            remote ? op.local : op.remote, op.bytes});
  }
  return groups;
}

// Makes one task for each object of a post.
Result<std::vector<std::shared_ptr<Task>>> ObjectMover::tasksOf(const core::Work& work) {
  VIADUCT_TRY(auto groups, groupsOf(work));
  std::vector<std::shared_ptr<Task>> out;
  for (auto& [slot, group] : groups) {
    const auto make = group.writes ? &Task::write : &Task::read;
    VIADUCT_TRY(auto task, make(group.pin, std::move(group.pieces), part_));
    out.push_back(std::move(task));
  }
  return out;
}

void ObjectMover::taskEnded(const std::shared_ptr<Task>& task, std::optional<Error> why) {
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
  const auto at = std::ranges::find_if(running_, [&](const ObjectJob* job) {
    return std::ranges::find(job->tasks, task) != job->tasks.end();
  });
  if (at == running_.end()) return;
  if (why || --(*at)->open == 0) end(**at, std::move(why));
}

void ObjectMover::endStopped(ObjectJob& job) {
  if (job.work.whole != 0) return assemblies_->cancel(job.work.whole);
  end(job, cancelled(opKindName(job.work.kind)));
}

// Reports a job. Its memory belongs to its owner again from here on.
void ObjectMover::end(ObjectJob& job, std::optional<Error> why) {
  for (const auto& task : job.tasks)
    if (!task->done()) requests_->drop(task);
  job.tasks.clear();
  std::erase(running_, &job);
  {
    const std::lock_guard lock(mutex_);
    reports_.push_back({&job, std::move(why)});
    reported_.notify_all();
  }
  const std::uint64_t one = 1;
  [[maybe_unused]] const auto written = ::write(event_.get(), &one, sizeof one);
}

}  // namespace viaduct::object
