#include "backends/file/mover.h"

#include <fmt/format.h>
#include <sys/eventfd.h>
#include <sys/resource.h>
#include <unistd.h>

#include <algorithm>
#include <bit>
#include <cerrno>
#include <system_error>
#include <utility>

#include "backends/file/facts.h"
#include "base/blocked_signals.h"
#include "base/log.h"

namespace viaduct::file {
namespace {

// The time that close() waits for the kernel, under the agent's lock.
constexpr std::chrono::milliseconds kMostPatience{50};
constexpr std::uint32_t kUsualOpenFilesMost = 256;

std::uint32_t openFileLimit(const Settings& settings) {
  if (const std::uint32_t wanted = kOpenFiles.of(settings); wanted != 0) return wanted;
  rlimit limit{};
  if (::getrlimit(RLIMIT_NOFILE, &limit) != 0) return kUsualOpenFilesMost;
  return static_cast<std::uint32_t>(std::clamp<rlim_t>(limit.rlim_cur / 4, 1, kUsualOpenFilesMost));
}

Error deniedError(std::string detail) {
  return {.code = Code::kDenied,
          .operation = "transfer",
          .detail = std::move(detail),
          .device = "file"};
}

}  // namespace

std::unique_ptr<Engine> openEngine(std::string_view name, std::uint32_t depth, std::uint32_t files,
                                   std::string& why) {
  if (name == "threads") return openThreads(depth);
  if (auto uring = openUring(depth, files, why)) return uring;
  if (name == "uring") return nullptr;
  static std::atomic_flag said;
  base::logOnce(said, base::LogLevel::kInfo, "file: threads read and write, because {}", why);
  return openThreads(depth);
}

Mover::Mover(const Settings& settings, OpenEngine open)
    : wanted_(kEngine.of(settings)),
      limits_{.depth = kDepth.of(settings),
              .open_files = openFileLimit(settings),
              .registered = kRegister.of(settings)},
      patience_(std::min<Duration>(settings.grace / 8, kMostPatience)),
      grace_(settings.grace),
      open_(std::move(open)) {
  ended_.reserve(kJobs);
}

Status Mover::start() {
  std::unique_lock lock(mutex_);
  if (phase_ == Phase::kNone && !stopping_) {
    bell_.reset(::eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK));
    if (!bell_) return systemError(Code::kExhausted, "eventfd", errno);
    const base::BlockedSignals none;
    try {
      thread_ = std::thread([self = shared_from_this()] { self->run(self); });
    } catch (const std::system_error& failed) {
      return systemError(Code::kExhausted, "start the thread for files", failed.code().value());
    }
    phase_ = Phase::kStarts;
  }
  changed_.wait(lock, [this] { return phase_ != Phase::kStarts; });
  if (phase_ == Phase::kRuns && !stopping_) return Ok{};
  if (start_error_) return *start_error_;
  return Error{.code = Code::kInvalid, .operation = "pin", .detail = "the agent is closed"};
}

void Mover::stop() {
  std::unique_lock lock(mutex_);
  stopping_ = true;
  for (Job& job : jobs_) stopJob(job, std::nullopt);
  letThreadLook();
  changed_.wait_for(lock, patience_,
                    [this] { return phase_ == Phase::kNone || phase_ == Phase::kOver; });
  if (!thread_.joinable()) return;
  std::thread thread = std::move(thread_);
  const bool over = phase_ == Phase::kOver;
  lock.unlock();
  if (over)
    thread.join();
  else
    thread.detach();
}

// Wakes the thread if it sleeps in its engine.
void Mover::letThreadLook() {
  if (std::exchange(sleeps_, false)) pieces_->engine().wake();
}

void Mover::pin(std::uint32_t slot, Target target) {
  const std::lock_guard lock(mutex_);
  if (slot >= slots_.size()) slots_.resize(slot + 1);
  slots_[slot] = {.target = std::make_unique<Target>(std::move(target)), .born = ++births_};
}

const Target* Mover::find(std::uint32_t slot) const {
  const std::lock_guard lock(mutex_);
  if (slot >= slots_.size() || !slots_[slot].target || slots_[slot].target->withdrawn)
    return nullptr;
  return slots_[slot].target.get();
}

Status Mover::unpin(std::uint32_t slot) {
  const std::lock_guard lock(mutex_);
  if (slot >= slots_.size() || !slots_[slot].target) return Ok{};
  Slot& place = slots_[slot];
  Target& target = *place.target;
  if (!std::exchange(target.withdrawn, true)) {
    place.leaving = Clock::now();
    if (target.pieces != 0) withdrawn_.push_back(&target);
  }
  const bool stuck = target.pieces != 0;
  letThreadLook();
  if (stuck && Clock::now() < *place.leaving + grace_)
    return Error{.code = Code::kBusy,
                 .operation = "unpin",
                 .detail = "the kernel is still reading or writing"};
  if (stuck) {
    ++*stuck_;
    leaving_.push_back(std::move(place.target));
  } else {
    drop(std::move(place.target));
  }
  place = {};
  if (!stuck) return Ok{};
  return Error{.code = Code::kPeerLost,
               .operation = "unpin",
               .detail = "the kernel has not given back a read or write of a file",
               .device = "file",
               .cause = "a disk or a file server does not answer",
               .remedy = "keep the memory until settled() of Agent::self() is true"};
}

// The thread destroys the target, because it has registered parts of it.
void Mover::drop(std::unique_ptr<Target> target) {
  if (phase_ == Phase::kRuns) gone_.push_back(std::move(target));
}

std::size_t Mover::post(const core::Work& work) {
  const std::lock_guard lock(mutex_);
  const auto free = std::find_if(jobs_.begin(), jobs_.end(),
                                 [](const Job& job) { return job.state == Job::State::kFree; });
  if (free == jobs_.end() || phase_ != Phase::kRuns || stopping_) return 0;
  *free = {.state = Job::State::kRuns, .serial = ++serials_, .work = work, .born = births_};
  running_ |= bitOf(*free);
  letThreadLook();
  return work.ops.size();
}

void Mover::cancel(const core::Sink& sink) {
  const std::lock_guard lock(mutex_);
  for (Job& job : jobs_)
    if (job.work.slice.sink == &sink && !job.left) stopJob(job, std::nullopt);
  letThreadLook();
}

// Nothing more of the job begins, and its pieces end early. It ends on the mover's thread.
void Mover::stopJob(Job& job, std::optional<Error> why) {
  if (job.state != Job::State::kRuns || job.stopped) return;
  job.stopped = job.ask_kernel = true;
  job.why = std::move(why);
}

void Mover::clearBell() {
  std::uint64_t rings = 0;
  [[maybe_unused]] const auto heard = ::read(bell_.get(), &rings, sizeof rings);
}

void Mover::poll(core::Completions& out) {
  if (!hasEnded()) return;
  const std::lock_guard lock(mutex_);
  for (const std::uint32_t number : ended_) {
    report(jobs_[number], out);
    jobs_[number] = {};
  }
  ended_.clear();
  ended_count_.store(0, std::memory_order_release);
}

Error Mover::finalError(const Job& job) const {
  Error why =
      job.why.value_or(Error{.code = Code::kCancelled, .operation = "transfer", .device = "file"});
  std::uint64_t all = 0;
  for (const core::Op& op : job.work.ops) all += op.bytes;
  why.detail +=
      fmt::format("{}{} of {} bytes had moved", why.detail.empty() ? "" : "; ", job.moved, all);
  return why;
}

void Mover::report(Job& job, core::Completions& out) {
  const std::uint64_t ops = job.work.ops.size();
  if (!job.stopped)
    out.emplace_back(core::Moved{.slice = job.work.slice, .ops = ops, .bytes = job.moved});
  else
    out.emplace_back(core::Failed{.slice = job.work.slice, .ops = ops, .why = finalError(job)});
}

void Mover::close(const core::Link& link, core::Completions& out) {
  std::unique_lock lock(mutex_);
  const auto isOurs = [&](const Job& job) {
    return job.state == Job::State::kRuns && job.work.link == &link && !job.left;
  };
  const bool any = std::any_of(jobs_.begin(), jobs_.end(), isOurs);
  for (Job& job : jobs_)
    if (isOurs(job)) stopJob(job, std::nullopt);
  letThreadLook();
  if (any)
    changed_.wait_for(lock, patience_,
                      [&] { return std::none_of(jobs_.begin(), jobs_.end(), isOurs); });
  for (Job& job : jobs_)
    if (isOurs(job)) {
      report(job, out);
      job.left = true;
      job.work.ops = {};
      ++*stuck_;
    }
  // Jobs that have ended meanwhile must not be reported after the link's end.
  std::erase_if(ended_, [&](std::uint32_t number) {
    if (jobs_[number].work.link != &link) return false;
    report(jobs_[number], out);
    jobs_[number] = {};
    return true;
  });
  ended_count_.store(static_cast<std::uint32_t>(ended_.size()), std::memory_order_release);
}

std::function<bool()> Mover::settling() const {
  return [stuck = stuck_] { return stuck->load(std::memory_order_acquire) == 0; };
}

// The functions below run on the mover's thread.

void Mover::run(std::shared_ptr<Mover> self) {
  std::string why;
  std::unique_ptr<Engine> engine = open_(wanted_, limits_.depth, limits_.open_files, why);
  {
    const std::lock_guard lock(mutex_);
    if (engine) {
      uses_uring_ = engine->name() == "uring";
      pieces_ = std::make_unique<Pieces>(std::move(engine), limits_);
    } else {
      start_error_ = Error{.code = Code::kUnsupported,
                           .operation = "io_uring_setup",
                           .detail = why,
                           .device = "file",
                           .cause = "a container's seccomp profile, or kernel.io_uring_disabled",
                           .remedy = "set VIADUCT_FILE_ENGINE to auto or threads"};
    }
    phase_ = pieces_ ? Phase::kRuns : Phase::kOver;
  }
  changed_.notify_all();
  if (!pieces_) return;
  finished_.reserve(limits_.depth);
  cut_.reserve(limits_.depth);
  cancelled_jobs_.reserve(kJobs);
  while (prepare()) carryOut();
  {
    const std::lock_guard lock(mutex_);
    pieces_.reset();
    phase_ = Phase::kOver;
  }
  changed_.notify_all();
  self.reset();
}

// Takes stock under the mutex: the finished pieces, and the next work. False: the thread ends.
bool Mover::prepare() {
  const std::lock_guard lock(mutex_);
  for (Pieces::Finished& finished : finished_) account(finished);
  finished_.clear();
  cutUp(pieces_->room());
  for (std::uint64_t left = running_; left != 0; left &= left - 1) {
    const auto number = static_cast<std::uint32_t>(std::countr_zero(left));
    Job& job = jobs_[number];
    if (std::exchange(job.ask_kernel, false) && job.pieces != 0) cancelled_jobs_.push_back(number);
    endIfOver(job);
  }
  std::swap(cancelled_targets_, withdrawn_);
  std::swap(forgotten_, gone_);
  sleeps_ = !mayEnd();
  return sleeps_;
}

bool Mover::mayEnd() const { return stopping_ && running_ == 0; }

void Mover::carryOut() {
  for (const std::uint32_t job : cancelled_jobs_) pieces_->cancelJob(job);
  for (const Target* target : cancelled_targets_) pieces_->cancelTarget(*target);
  for (const Piece& piece : cut_) pieces_->add(piece);
  for (const auto& target : forgotten_) pieces_->forget(*target);
  cancelled_jobs_.clear();
  cancelled_targets_.clear();
  cut_.clear();
  forgotten_.clear();
  pieces_->wait(true, finished_);
}

// Cuts one piece of each job in turn, so that no job waits for a longer one.
void Mover::cutUp(std::uint32_t room) {
  for (std::uint64_t cutting = running_; room != 0 && cutting != 0 && in_flight_ < kMostInFlight;) {
    turn_ = (turn_ + static_cast<std::uint32_t>(
                         std::countr_zero(std::rotr(cutting, static_cast<int>(turn_))))) %
            kJobs;
    Job& job = jobs_[turn_];
    Piece piece;
    if (job.cutsMore() && cutOne(job, piece)) {
      piece.job = turn_;
      ++job.pieces;
      ++piece.host->pieces;
      ++piece.file->pieces;
      in_flight_ += piece.bytes;
      cut_.push_back(piece);
      --room;
    } else {
      cutting &= ~bitOf(job);
    }
    turn_ = (turn_ + 1) % kJobs;
  }
}

bool Mover::cutOne(Job& job, Piece& out) {
  const core::Op& op = job.work.ops[job.next];
  if (Status aimed = aim(job, op, out); !aimed) {
    stopJob(job, std::move(aimed).error());
    return false;
  }
  const Cut cut = nextCut(out.address, out.offset, op.bytes - job.cut, out.file->file->alignment);
  out.bytes = cut.bytes;
  out.bounces = cut.bounces;
  out.serial = job.serial;
  job.cut += cut.bytes;
  if (job.cut == op.bytes) {
    ++job.next;
    job.cut = 0;
  }
  return true;
}

// Finds the memory and the file of an op, from the first byte that is not cut off yet.
Status Mover::aim(const Job& job, const core::Op& op, Piece& out) {
  const auto target = [&](std::uint32_t number) -> Target* {
    if (number >= slots_.size() || slots_[number].born > job.born) return nullptr;
    Target* const found = slots_[number].target.get();
    return found == nullptr || found->withdrawn ? nullptr : found;
  };
  Target* const local = target(op.local_pin);
  Target* const remote = target(op.remote_pin);
  if (local == nullptr || remote == nullptr) return deniedError("the memory or file was released");
  if (!local->covers(op.local, op.bytes) || !remote->covers(op.remote, op.bytes))
    return deniedError(fmt::format("{} bytes are outside their pins", op.bytes));
  const bool to_remote = job.work.kind == OpKind::kWrite;
  const bool file_is_remote = remote->file != nullptr;
  if (file_is_remote == (local->file != nullptr))
    return deniedError("one side has to be a file, and the other one host memory");
  out.host = file_is_remote ? local : remote;
  out.file = file_is_remote ? remote : local;
  out.write = to_remote == file_is_remote;
  if (!(to_remote ? remote : local)->writable) return deniedError("the pin is read-only");
  out.address = (file_is_remote ? op.local : op.remote) + job.cut;
  out.offset =
      (file_is_remote ? op.remote : op.local) + job.cut - out.file->address + out.file->first;
  return Ok{};
}

void Mover::account(Pieces::Finished& finished) {
  const Piece& piece = finished.piece;
  Job& job = jobs_[piece.job];
  --job.pieces;
  in_flight_ -= piece.bytes;
  if (!finished.why)
    job.moved += piece.bytes;
  else
    stopJob(job, std::move(*finished.why));
  for (Target* const target : {piece.host, piece.file}) {
    if (--target->pieces != 0 || !target->withdrawn) continue;
    const auto left = std::find_if(leaving_.begin(), leaving_.end(),
                                   [&](const auto& one) { return one.get() == target; });
    if (left == leaving_.end()) continue;
    --*stuck_;
    drop(std::move(*left));
    leaving_.erase(left);
  }
}

void Mover::endIfOver(Job& job) {
  if (!job.isOver()) return;
  running_ &= ~bitOf(job);
  if (job.left) {
    job = {};
    --*stuck_;
    return;
  }
  job.state = Job::State::kEnded;
  ended_.push_back(static_cast<std::uint32_t>(&job - jobs_.data()));
  ended_count_.store(static_cast<std::uint32_t>(ended_.size()), std::memory_order_release);
  if (ended_.size() == 1) {
    const std::uint64_t one = 1;
    [[maybe_unused]] const auto rung = ::write(bell_.get(), &one, sizeof one);
  }
  changed_.notify_all();
}

}  // namespace viaduct::file
