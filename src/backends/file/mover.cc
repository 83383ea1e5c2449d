#include "backends/file/mover.h"

#include <fmt/format.h>
#include <poll.h>
#include <sys/resource.h>

#include <algorithm>
#include <bit>
#include <cerrno>
#include <system_error>
#include <thread>
#include <utility>

#include "backends/file/facts.h"
#include "base/blocked_signals.h"
#include "base/log.h"
#include "base/poller.h"

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

Result<std::unique_ptr<Engine>> openEngine(std::string_view name, std::uint32_t depth,
                                           std::uint32_t files) {
  if (name == "threads") return openThreads(depth);
  auto uring = openUring(depth, files);
  if (uring || uring.error().code != Code::kUnsupported || name == "uring") return uring;
  static std::atomic_flag said;
  base::logOnce(said, base::LogLevel::kInfo, "file: threads read and write, because {}",
                uring.error().detail);
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
  finished_.reserve(limits_.depth);
}

Mover::~Mover() = default;

Status Mover::prepare() {
  const base::Lock lock(preparing_);
  if (is_prepared_) return Ok{};
  VIADUCT_TRY(prepared_, open_(wanted_, limits_.depth, limits_.open_files));
  is_prepared_ = true;
  return Ok{};
}

std::vector<int> Mover::start() {
  const base::Lock lock(preparing_);
  if (prepared_) pieces_ = std::make_unique<Pieces>(std::move(prepared_), limits_);
  return pieces_ ? pieces_->engine().fds() : std::vector<int>{};
}

void Mover::stop() {
  stopping_ = true;
  for (Job& job : jobs_) stopJob(job, std::nullopt);
  waitUntil([this] { return running_ == 0; });
  if (running_ != 0) leaveBehind();
}

// Hands the mover to a thread. If none starts, the mover stays for ever, because the threads of its
// engine use its files.
void Mover::leaveBehind() {
  const auto wait = [self = shared_from_this()] {
    while (self->running_ != 0) {
      if (!self->goes_on_) self->waitForEvent(Clock::time_point::max());
      self->progress();
    }
  };
  const base::BlockedSignals none;
  try {
    std::thread(wait).detach();
  } catch (const std::system_error&) {
    static base::Mutex mutex;
    static auto* const kept = new std::vector<std::shared_ptr<Mover>>;
    const base::Lock lock(mutex);
    kept->push_back(shared_from_this());
  }
}

// Makes progress, at most for the patience.
void Mover::waitUntil(const std::function<bool()>& done) {
  const auto until = Clock::now() + patience_;
  if (pieces_) progress();
  while (!done() && Clock::now() < until) {
    if (!goes_on_) waitForEvent(until);
    progress();
  }
}

void Mover::waitForEvent(Clock::time_point until) const {
  std::vector<pollfd> waits;
  for (const int fd : pieces_->engine().fds())
    waits.push_back({.fd = fd, .events = POLLIN, .revents = 0});
  const bool ever = until == Clock::time_point::max();
  ::poll(waits.data(), waits.size(), ever ? -1 : base::Poller::milliseconds(until - Clock::now()));
}

void Mover::pin(std::uint32_t slot, Target target) {
  if (slot >= slots_.size()) slots_.resize(slot + 1);
  slots_[slot] = {.target = std::make_unique<Target>(std::move(target)), .born = ++births_};
}

const Target* Mover::find(std::uint32_t slot) const {
  if (slot >= slots_.size() || !slots_[slot].target || slots_[slot].target->withdrawn)
    return nullptr;
  return slots_[slot].target.get();
}

Status Mover::unpin(std::uint32_t slot) {
  if (slot >= slots_.size() || !slots_[slot].target) return Ok{};
  Slot& place = slots_[slot];
  Target& target = *place.target;
  if (!std::exchange(target.withdrawn, true)) {
    place.leaving = Clock::now();
    if (target.pieces != 0) pieces_->cancelTarget(target);
  }
  if (target.pieces != 0) progress();
  const bool stuck = target.pieces != 0;
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

void Mover::drop(std::unique_ptr<Target> target) {
  if (pieces_) pieces_->forget(*target);
}

std::size_t Mover::post(const core::Work& work) {
  const auto free = std::find_if(jobs_.begin(), jobs_.end(),
                                 [](const Job& job) { return job.state == Job::State::kFree; });
  if (free == jobs_.end() || !pieces_ || stopping_) return 0;
  *free = {.state = Job::State::kRuns, .serial = ++serials_, .work = work, .born = births_};
  running_ |= bitOf(*free);
  progress();
  return work.ops.size();
}

void Mover::cancel(const core::Sink& sink) {
  for (Job& job : jobs_)
    if (job.work.slice.sink == &sink && !job.left) stopJob(job, std::nullopt);
}

// Nothing more of the job begins, and its pieces end early. poll() ends it.
void Mover::stopJob(Job& job, std::optional<Error> why) {
  if (job.state != Job::State::kRuns || job.stopped) return;
  job.stopped = true;
  job.why = std::move(why);
  if (job.pieces != 0) pieces_->cancelJob(numberOf(job));
  goes_on_ = true;
}

void Mover::poll(core::Completions& out) {
  if (running_ != 0) progress();
  collect(out);
}

void Mover::collect(core::Completions& out) {
  for (const std::uint32_t number : ended_) {
    report(jobs_[number], out);
    jobs_[number] = {};
  }
  ended_.clear();
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
  const auto isOurs = [&](const Job& job) {
    return job.state == Job::State::kRuns && job.work.link == &link && !job.left;
  };
  for (Job& job : jobs_)
    if (isOurs(job)) stopJob(job, std::nullopt);
  if (std::ranges::any_of(jobs_, isOurs))
    waitUntil([&] { return std::ranges::none_of(jobs_, isOurs); });
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
}

std::function<bool()> Mover::settling() const {
  return [stuck = stuck_] { return stuck->load(std::memory_order_acquire) == 0; };
}

// Takes what has ended, and submits what there is room for.
void Mover::progress() {
  goes_on_ = false;
  pieces_->reap(finished_);
  for (Pieces::Finished& finished : finished_) account(finished);
  finished_.clear();
  cutUp();
  if (!pieces_->submit()) goes_on_ = true;
  for (std::uint64_t left = running_; left != 0; left &= left - 1)
    endIfOver(jobs_[static_cast<std::size_t>(std::countr_zero(left))]);
}

// Cuts one piece of each job in turn, so that no job waits for a longer one.
void Mover::cutUp() {
  std::uint32_t room = std::min(pieces_->room(), kMostAtOnce);
  std::uint64_t cutting = running_;
  while (room != 0 && cutting != 0 && in_flight_ < kMostInFlight) {
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
      pieces_->add(piece);
      --room;
    } else {
      cutting &= ~bitOf(job);
    }
    turn_ = (turn_ + 1) % kJobs;
  }
  if (cutting != 0 && in_flight_ < kMostInFlight && pieces_->room() != 0) goes_on_ = true;
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
  ended_.push_back(numberOf(job));
}

}  // namespace viaduct::file
