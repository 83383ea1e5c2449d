#include "backends/file/file_mover.h"

#include <fmt/format.h>
#include <poll.h>
#include <sys/resource.h>

#include <algorithm>
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

FileMover::FileMover(const Settings& settings, OpenEngine open)
    : wanted_(kEngine.of(settings)),
      limits_{.depth = kDepth.of(settings),
              .open_files = openFileLimit(settings),
              .registered = kRegister.of(settings)},
      open_(std::move(open)),
      jobs_(move::JobTable::Traits{
          .device = "file", .most = kMostJobs, .both_ends = true, .grace = settings.grace}) {
  finished_.reserve(limits_.depth);
}

FileMover::~FileMover() = default;

Status FileMover::prepare() {
  const base::Lock lock(preparing_);
  if (is_prepared_) return Ok{};
  VIADUCT_TRY(prepared_, open_(wanted_, limits_.depth, limits_.open_files));
  is_prepared_ = true;
  return Ok{};
}

std::vector<int> FileMover::start() {
  const base::Lock lock(preparing_);
  if (prepared_) pieces_ = std::make_unique<Pieces>(std::move(prepared_), limits_);
  return pieces_ ? pieces_->engine().fds() : std::vector<int>{};
}

void FileMover::stop() {
  stopping_ = true;
  if (!jobs_.drain(nullptr, *this)) leaveBehind();
}

// Hands the mover to a thread. If no thread can start, the mover stays for ever, because the
// threads of its engine use its files.
void FileMover::leaveBehind() {
  const auto wait = [self = shared_from_this()] {
    while (!self->jobs_.idle()) self->progressUntil(Clock::time_point::max());
  };
  const base::BlockedSignals none;
  try {
    std::thread(wait).detach();
  } catch (const std::system_error&) {
    static base::Mutex mutex;
    static auto* const kept = new std::vector<std::shared_ptr<FileMover>>;
    const base::Lock lock(mutex);
    kept->push_back(shared_from_this());
  }
}

void FileMover::progressUntil(Clock::time_point until) {
  if (!goes_on_ && until != kNow) waitForEvent(until);
  progress();
}

void FileMover::waitForEvent(Clock::time_point until) const {
  std::vector<pollfd> waits;
  for (const int fd : pieces_->engine().fds())
    waits.push_back({.fd = fd, .events = POLLIN, .revents = 0});
  const bool ever = until == Clock::time_point::max();
  ::poll(waits.data(), waits.size(), ever ? -1 : base::Poller::milliseconds(until - Clock::now()));
}

void FileMover::pin(std::uint32_t slot, FileTarget target) {
  if (slot >= targets_.size()) targets_.resize(slot + 1);
  targets_[slot] = std::make_unique<FileTarget>(std::move(target));
}

FileTarget* FileMover::find(std::uint32_t slot) const {
  FileTarget* const target = slot < targets_.size() ? targets_[slot].get() : nullptr;
  return target == nullptr || target->withdrawn ? nullptr : target;
}

Status FileMover::unpin(std::uint32_t slot) {
  if (slot >= targets_.size() || !targets_[slot]) return Ok{};
  targets_[slot]->withdrawn = true;
  Status left = jobs_.withdraw(slot, *this);
  if (left) {
    drop(std::move(targets_[slot]));
  } else if (left.error().code == Code::kPeerLost) {
    stuck_.push_back(std::move(targets_[slot]));
    Error why = std::move(left).error();
    why.cause = "a disk or a file server does not answer";
    return why;
  }
  return left;
}

void FileMover::drop(std::unique_ptr<FileTarget> target) {
  if (pieces_) pieces_->forget(*target);
}

std::size_t FileMover::post(const core::Work& work) {
  if (work.ops.empty() || jobs_.full() || !pieces_ || stopping_) return 0;
  ready_.push(jobs_.add(work, this));
  progress();
  return work.ops.size();
}

void FileMover::stop(move::Job& job) {
  ready_.remove(job);
  if (job.outstanding == 0) return;
  pieces_->cancelJob(job);
  goes_on_ = true;
}

void FileMover::poll(core::Completions& out) {
  if (!jobs_.empty()) progress();
  collect(out);
}

// Takes the pieces that have ended, and submits as many further pieces as there is room for.
void FileMover::progress() {
  goes_on_ = false;
  pieces_->reap(finished_);
  for (Pieces::FinishedPiece& finished : finished_) account(finished);
  finished_.clear();
  cutUp();
  if (!pieces_->submit()) goes_on_ = true;
  if (!stuck_.empty() && jobs_.settled())
    for (auto& target : std::exchange(stuck_, {})) drop(std::move(target));
}

// Cuts one piece of each job of a class in turn, so that no job waits for a longer job.
void FileMover::cutUp() {
  std::uint32_t room = std::min(pieces_->room(), kMostAtOnce);
  while (!ready_.empty() && room != 0 && in_flight_ < kMostInFlight) {
    move::Job& job = ready_.pop(0);
    FilePiece piece;
    if (!cutOne(job, piece)) continue;
    piece.job = &job;
    ++job.outstanding;
    in_flight_ += piece.bytes;
    pieces_->add(piece);
    ready_.served(job, piece.bytes);
    if (!job.allPosted()) ready_.push(job);
    --room;
  }
  if (!ready_.empty() && in_flight_ < kMostInFlight && pieces_->room() != 0) goes_on_ = true;
}

bool FileMover::cutOne(move::Job& job, FilePiece& out) {
  const core::Op& op = job.work.ops[job.next_op];
  if (Status aimed = aim(job, op, out); !aimed) {
    jobs_.stop(job, std::move(aimed).error());
    return false;
  }
  const Cut cut =
      nextCut(out.address, out.offset, op.bytes - job.offset, out.file->file->alignment);
  out.bytes = cut.bytes;
  out.bounces = cut.bounces;
  job.offset += cut.bytes;
  if (job.offset == op.bytes) {
    ++job.next_op;
    job.offset = 0;
  }
  return true;
}

// Finds the memory and the file of an op, from the first byte that is not cut off yet.
Status FileMover::aim(const move::Job& job, const core::Op& op, FilePiece& out) {
  FileTarget* const local = find(op.local_pin);
  FileTarget* const remote = find(op.remote_pin);
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
  out.address = (file_is_remote ? op.local : op.remote) + job.offset;
  out.offset =
      (file_is_remote ? op.remote : op.local) + job.offset - out.file->address + out.file->first;
  return Ok{};
}

void FileMover::account(Pieces::FinishedPiece& finished) {
  move::Job& job = *finished.piece.job;
  --job.outstanding;
  in_flight_ -= finished.piece.bytes;
  if (!finished.why)
    job.moved.bytes += finished.piece.bytes;
  else
    jobs_.stop(job, std::move(*finished.why));
  jobs_.settle(job);
}

}  // namespace viaduct::file
