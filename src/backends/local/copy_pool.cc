#include "backends/local/copy_pool.h"

#include <pthread.h>
#include <sched.h>

#include <algorithm>
#include <bit>
#include <chrono>
#include <memory>
#include <system_error>
#include <utility>

#include "base/blocked_signals.h"
#include "base/log.h"

namespace viaduct::local {

using core::Completions;
using core::DirectMover;
using core::Failed;
using core::Moved;
using core::Op;

namespace {

// The bytes that a thread copies between entering and leaving the gate, in some tens of
// microseconds. A thread thus leaves quickly, and cutting costs little in comparison. Works of up
// to one chunk are copied inside post(), because handing them over costs more.
constexpr std::uint64_t kChunkBytes = std::uint64_t{256} << 10U;
constexpr std::size_t kChunkOps = CmaBatch::kMost;
// Works of up to this many chunks are copied inside moveNow(), in about the time that one poll()
// may take.
constexpr std::uint64_t kMostChunksNow = 16;
constexpr std::uint64_t kHelpBytes = 4 * kChunkBytes;  // below it, wake-ups do not pay
constexpr auto kPollTime = std::chrono::microseconds(1000);
constexpr auto kPostTime = std::chrono::microseconds(15);  // no chunk begins later in a post
constexpr unsigned kMostThreads = 8;                       // more threads only wait for memory

constexpr std::uint64_t kOpen = std::uint64_t{1} << 63U;
constexpr std::uint64_t kStopped = ~std::uint64_t{0};
constexpr std::size_t kMostOps = (std::size_t{1} << 32U) - 2;

std::uint64_t bitOf(unsigned index) { return std::uint64_t{1} << index; }
std::uint64_t cursorAt(std::uint64_t op, std::uint64_t piece) { return op << 32U | piece; }
std::uint64_t opOf(std::uint64_t cursor) { return cursor >> 32U; }
std::uint64_t pieceOf(std::uint64_t cursor) { return cursor & 0xffffffffU; }

unsigned threadsByCores() {
  cpu_set_t usable;
  CPU_ZERO(&usable);
  if (::sched_getaffinity(0, sizeof usable, &usable) != 0) return 1;
  return std::clamp(static_cast<unsigned>(CPU_COUNT(&usable)), 1U, kMostThreads);
}

base::AdaptiveCopy::Strategy strategyOf(Toggle wide_copies) {
  using Strategy = base::AdaptiveCopy::Strategy;
  if (wide_copies == Toggle::kAuto) return Strategy::kMeasure;
  return wide_copies == Toggle::kOn ? Strategy::kWide : Strategy::kPlain;
}

// The bytes of all ops; the sum may stop once it exceeds `enough`.
std::uint64_t atLeast(std::span<const Op> ops, std::uint64_t enough) {
  std::uint64_t bytes = 0;
  for (const Op& op : ops) {
    bytes += op.bytes;
    if (bytes > enough) break;
  }
  return bytes;
}

// The index of the next set bit after `last`, in turn.
unsigned inTurn(std::uint64_t bits, unsigned last) {
  const unsigned shift = (last + 1) % 64;
  return (shift +
          static_cast<unsigned>(std::countr_zero(std::rotr(bits, static_cast<int>(shift))))) %
         64;
}

}  // namespace

struct alignas(64) CopyPool::CopyJob {
  // A flag that is set while the job is in flight, and the number of threads inside. No thread
  // enters a closed job: the fields below are written while it is closed, and read only inside.
  std::atomic<std::uint64_t> door{0};
  CopyWork task = {};
  core::SliceOf slice = {};
  std::span<const Op> ops = {};

  alignas(64) std::atomic<std::uint64_t> cursor{0};  // the next op and piece, or kStopped
  std::atomic<std::uint64_t> moved_ops{0}, moved_bytes{0}, fault{0};

  bool enter() {
    std::uint64_t word = door.load(std::memory_order_relaxed);
    do {
      if ((word & kOpen) == 0) return false;
    } while (!door.compare_exchange_weak(word, word + 1));
    return true;
  }
  void leave() { door.fetch_sub(1); }
  // Fills in a closed job, whose first chunk is at `from`.
  void begin(const CopyWork& what, std::span<const Op> all, std::uint64_t from) {
    task = what;
    ops = all;
    moved_ops.store(0, std::memory_order_relaxed);
    moved_bytes.store(0, std::memory_order_relaxed);
    fault.store(0, std::memory_order_relaxed);
    cursor.store(from, std::memory_order_relaxed);
  }
};

CopyPool::CopyPool(const LiveTable& here, const Settings& settings)
    : threads_(settings.copy_threads != 0 ? settings.copy_threads : threadsByCores()),
      here_(here),
      strategy_(strategyOf(settings.wide_copies)),
      copier_(here),
      jobs_(std::make_unique<std::array<CopyJob, kJobs>>()) {}

CopyPool::~CopyPool() {
  over_ = true;
  ++bell_;
  bell_.notify_all();
}

void CopyPool::start() {
  if (!helpers_.empty()) return;
  const base::BlockedSignals blocked;
  try {
    for (unsigned i = 1; i < threads_; ++i) {
      helpers_.emplace_back([this] { helper(); });
      pthread_setname_np(helpers_.back().native_handle(), "viaduct-copy");
    }
  } catch (const std::system_error& error) {  // with fewer helpers copies are slower, not wrong
    base::log(base::LogLevel::kWarning, "local: {} copy threads instead of {}: {}",
              helpers_.size() + 1, threads_, error.what());
  }
}

void CopyPool::expect(std::uint64_t bytes) const {
  using base::AdaptiveCopy;
  if (strategy_ == AdaptiveCopy::Strategy::kMeasure && bytes >= AdaptiveCopy::kLeastMeasured)
    AdaptiveCopy::measureReference();
}

// Returns the index of a free job, which now belongs to the caller; kJobs if none is free.
unsigned CopyPool::claim() {
  std::uint64_t claimed = claimed_.load(std::memory_order_relaxed);
  while (claimed != ~std::uint64_t{0}) {
    const auto index = static_cast<unsigned>(std::countr_one(claimed));
    if (claimed_.compare_exchange_weak(claimed, claimed | bitOf(index), std::memory_order_acquire))
      return index;
  }
  return kJobs;
}

void CopyPool::release(unsigned index) {
  claimed_.fetch_and(~bitOf(index), std::memory_order_release);
}

// Lets the copying threads take chunks of the job.
void CopyPool::open(unsigned index, std::uint64_t bytes) {
  (*jobs_)[index].door.store(kOpen, std::memory_order_release);
  ready_.fetch_or(bitOf(index));
  wake(bytes);
}

// Waits until no thread is inside a job that has no more chunks. Each thread inside copies one
// chunk.
void CopyPool::shut(unsigned index) {
  ready_.fetch_and(~bitOf(index));
  std::uint64_t open = kOpen;
  for (; !(*jobs_)[index].door.compare_exchange_strong(open, 0); open = kOpen)
    std::this_thread::yield();
}

std::size_t CopyPool::post(const core::Work& work, PeerMemory& peer, std::uint64_t now) {
  if (work.ops.empty()) return 0;
  const unsigned index = claim();
  if (index == kJobs) return 0;
  CopyJob& job = (*jobs_)[index];
  const auto ops = work.ops.first(std::min(work.ops.size(), kMostOps));
  const std::uint64_t bytes = atLeast(ops, kHelpBytes);
  CopyWork task{
      .kind = work.kind, .peer = &peer, .born = now, .number = nextNumber(), .bytes = bytes};
  if (bytes >= base::AdaptiveCopy::kLeastMeasured) task.strategy = strategy_;
  job.begin(task, ops, 0);
  job.slice = work.slice;
  used_ |= bitOf(index);
  if (bytes <= kChunkBytes && job.ops.size() <= kChunkOps) {
    copyAtOnce(job, bytes);
    over_at_once_ |= bitOf(index);
    return job.ops.size();
  }
  open(index, bytes);
  return job.ops.size();
}

bool CopyPool::fits(std::span<const Op> ops) {
  constexpr std::uint64_t kMostBytes = kMostChunksNow * kChunkBytes;
  return ops.size() <= kMostChunksNow * kChunkOps && atLeast(ops, kMostBytes) <= kMostBytes;
}

// The copier is on the stack. Most of its size are the lists for CMA, whose unused entries cost
// nothing.
DirectMover::Outcome CopyPool::copyNow(const core::Work& work, PeerMemory& peer, std::uint64_t now,
                                       DirectMover::Progress& so_far,
                                       const std::atomic<bool>& pause) {
  const std::uint64_t bytes = atLeast(work.ops, kHelpBytes);
  CopyWork task{.kind = work.kind, .peer = &peer, .born = now, .number = 1, .bytes = bytes};
  if (bytes >= base::AdaptiveCopy::kLeastMeasured) task.strategy = strategy_;
  if (bytes > kChunkBytes || work.ops.size() > kChunkOps)
    return copyChunks(task, work.ops, so_far, pause);
  ChunkCopier copier(here_);
  if (copier.run(task, {.ops = work.ops, .bytes = bytes})) return DirectMover::Outcome::kFailed;
  so_far.bytes = bytes;
  return DirectMover::Outcome::kMoved;
}

// Copies at least one chunk. Helpers take part in a work that pays for waking them.
DirectMover::Outcome CopyPool::copyChunks(const CopyWork& task, std::span<const Op> ops,
                                          DirectMover::Progress& so_far,
                                          const std::atomic<bool>& pause) {
  CopyJob alone;
  const unsigned index = task.bytes >= kHelpBytes && !helpers_.empty() ? claim() : kJobs;
  const bool helped = index != kJobs;
  CopyJob& job = helped ? (*jobs_)[index] : alone;
  job.begin(task, ops, so_far.next);
  job.task.number = nextNumber();
  if (helped) open(index, task.bytes);
  ChunkCopier copier(here_);
  CopyChunk chunk;
  bool last = false;
  while (take(job, chunk, last)) {
    copy(job, copier, chunk);
    if (pause.load(std::memory_order_relaxed)) break;
  }
  so_far.next = job.cursor.exchange(kStopped);
  if (helped) shut(index);
  so_far.bytes += job.moved_bytes.load();
  const bool failed = job.fault.load() != 0;
  if (helped) release(index);
  if (failed) return DirectMover::Outcome::kFailed;
  return opOf(so_far.next) < ops.size() ? DirectMover::Outcome::kPaused
                                        : DirectMover::Outcome::kMoved;
}

// Copies a job of one chunk. The job stays closed, so no other thread touches it.
void CopyPool::copyAtOnce(CopyJob& job, std::uint64_t bytes) {
  const Fault fault = copier_.run(job.task, {.ops = job.ops, .bytes = bytes});
  job.cursor.store(cursorAt(job.ops.size(), 0), std::memory_order_relaxed);
  job.fault.store(fault.packed(), std::memory_order_relaxed);
  if (!fault) job.moved_bytes.store(bytes, std::memory_order_relaxed);
}

void CopyPool::wake(std::uint64_t bytes) {
  if (bytes < kHelpBytes || helpers_.empty()) return;
  ++bell_;
  bell_.notify_all();
}

void CopyPool::poll(Completions& out, const std::atomic<bool>& pause) {
  // Only helpers still copy. If cores are scarce, they may need the core of this thread.
  if (!copyFor(kPollTime, pause, out) && used_ != 0) std::this_thread::yield();
}

void CopyPool::collect(Completions& out) {
  static const std::atomic<bool> never{false};
  copyFor(kPostTime, never, out);
}

// False: there was nothing to copy.
bool CopyPool::copyFor(Duration time, const std::atomic<bool>& pause, Completions& out) {
  finishAll(out);
  if (used_ == 0) return false;
  const auto until = Clock::now() + time;
  bool copied = false;
  while (copyOne(copier_, last_)) {
    copied = true;
    if (pause.load(std::memory_order_relaxed) || Clock::now() >= until) break;
  }
  finishAll(out);
  return copied;
}

void CopyPool::cancel(const core::Sink& sink) {
  for (std::uint64_t left = used_; left != 0; left &= left - 1)
    if (CopyJob& job = (*jobs_)[static_cast<unsigned>(std::countr_zero(left))];
        job.slice.sink == &sink)
      stop(job, {Fault::Cause::kCancelled});
}

void CopyPool::close(const PeerMemory& peer, Completions& out) {
  for (std::uint64_t left = used_; left != 0; left &= left - 1) {
    const auto index = static_cast<unsigned>(std::countr_zero(left));
    CopyJob& job = (*jobs_)[index];
    if (job.task.peer != &peer) continue;
    stop(job, {Fault::Cause::kClosed});
    while (!finish(index, out)) std::this_thread::yield();
  }
}

void CopyPool::drain() {
  const Gate::Leaving inside = indoors_.turn();
  while (!indoors_.left(inside)) std::this_thread::yield();
}

// Lets no thread take a further chunk. If all chunks are taken, the job ends by itself.
void CopyPool::stop(CopyJob& job, Fault why) {
  std::uint64_t cursor = job.cursor.load();
  do {
    if (opOf(cursor) >= job.ops.size()) return;
  } while (!job.cursor.compare_exchange_weak(cursor, kStopped));
  std::uint64_t none = 0;
  job.fault.compare_exchange_strong(none, why.packed());
}

void CopyPool::finishAll(Completions& out) {
  for (std::uint64_t left = used_; left != 0; left &= left - 1)
    finish(static_cast<unsigned>(std::countr_zero(left)), out);
}

// Reports the job's ops to `out` if the job has ended: no chunk is left, and no thread is inside.
bool CopyPool::finish(unsigned index, Completions& out) {
  CopyJob& job = (*jobs_)[index];
  const std::uint64_t bit = bitOf(index);
  if ((over_at_once_ & bit) == 0) {
    if (opOf(job.cursor.load(std::memory_order_acquire)) < job.ops.size()) return false;
    std::uint64_t open = kOpen;
    if (!job.door.compare_exchange_strong(open, 0)) return false;
  }
  over_at_once_ &= ~bit;
  if ((ready_.load(std::memory_order_relaxed) & bit) != 0) ready_.fetch_and(~bit);
  used_ &= ~bit;

  const std::uint64_t all = job.ops.size();
  const Fault fault = Fault::unpack(job.fault.load());
  const std::uint64_t moved = fault ? job.moved_ops.load() : all;
  if (moved != 0) out.emplace_back(Moved{job.slice, moved, job.moved_bytes.load()});
  if (moved != all)
    out.emplace_back(Failed{job.slice, all - moved, errorOf(fault, job.task.peer->peer())});
  release(index);
  return true;
}

// Cuts the next chunk off the job. `last`: it is the final one.
bool CopyPool::take(CopyJob& job, CopyChunk& chunk, bool& last) {
  std::uint64_t cursor = job.cursor.load(std::memory_order_acquire);
  std::uint64_t next = 0;
  do {
    const std::uint64_t first = opOf(cursor);
    if (first >= job.ops.size()) return false;
    const Op& front = job.ops[first];
    if (front.bytes > kChunkBytes) {
      const std::uint64_t skip = pieceOf(cursor) * kChunkBytes;
      const std::uint64_t bytes = std::min(kChunkBytes, front.bytes - skip);
      chunk = {.ops = job.ops.subspan(first, 1), .piece = true, .skip = skip, .bytes = bytes};
      next = skip + bytes == front.bytes ? cursorAt(first + 1, 0) : cursor + 1;
    } else {
      std::uint64_t bytes = 0;
      std::size_t count = 0;
      const std::size_t most = std::min(job.ops.size() - first, kChunkOps);
      while (count < most && bytes + job.ops[first + count].bytes <= kChunkBytes)
        bytes += job.ops[first + count++].bytes;
      chunk = {.ops = job.ops.subspan(first, count), .bytes = bytes};
      next = cursorAt(first + count, 0);
    }
  } while (!job.cursor.compare_exchange_weak(cursor, next));
  last = opOf(next) >= job.ops.size();
  return true;
}

void CopyPool::copy(CopyJob& job, ChunkCopier& copier, const CopyChunk& chunk) {
  if (const Fault fault = copier.run(job.task, chunk)) {
    std::uint64_t none = 0;
    job.fault.compare_exchange_strong(none, fault.packed());
    job.cursor.store(kStopped);
    return;
  }
  // An op in several pieces counts as moved only when the whole work is.
  if (!chunk.piece) job.moved_ops.fetch_add(chunk.ops.size(), std::memory_order_relaxed);
  job.moved_bytes.fetch_add(chunk.bytes, std::memory_order_relaxed);
}

// Copies one chunk of the next job in turn, if other threads left one. False: no job has chunks.
bool CopyPool::copyOne(ChunkCopier& copier, unsigned& last) {
  const std::uint64_t ready = ready_.load(std::memory_order_acquire);
  if (ready == 0) return false;
  last = inTurn(ready, last);
  CopyJob& job = (*jobs_)[last];
  if (!job.enter()) return true;
  CopyChunk chunk;
  bool final = true;
  const bool taken = take(job, chunk, final);
  if (final) ready_.fetch_and(~bitOf(last));
  if (taken) copy(job, copier, chunk);
  job.leave();
  return true;
}

void CopyPool::helper() {
  const auto copier = std::make_unique<ChunkCopier>(here_);
  unsigned last = 0;
  while (true) {
    const std::uint32_t heard = bell_.load();
    if (over_) return;
    const Gate::Pass pass = indoors_.enter();
    const bool found = copyOne(*copier, last);
    indoors_.leave(pass);
    if (!found) bell_.wait(heard);
  }
}

}  // namespace viaduct::local
