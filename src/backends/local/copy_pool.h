// The threads that copy: posting threads, the thread that makes the agent's progress, and helpers
// that sleep while there is no work. Threads: post(), poll(), collect() and cancel() one at a
// time; all else while the rail is stopped, unless a comment says otherwise. Helpers call no agent.
#pragma once

#include <viaduct/settings.h>

#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <span>
#include <thread>
#include <vector>

#include "backends/local/copy_chunk.h"
#include "backends/local/gate.h"
#include "core/backend.h"
#include "core/op.h"

namespace viaduct::local {

class CopyPool {
 public:
  // `here`: this process's own registrations. The settings limit the number of copying threads,
  // including the one that polls, and choose the copies that bypass the cache.
  CopyPool(const LiveTable& here, const Settings& settings);
  ~CopyPool();
  CopyPool(const CopyPool&) = delete;
  CopyPool& operator=(const CopyPool&) = delete;

  // Starts the helpers if they are not running. Call it with the first peer, so that an agent
  // without peers has no helpers.
  void start();

  // Prepares for copies of memory of that size. Call it before the first such job, because a job
  // must not allocate.
  void expect(std::uint64_t bytes) const;

  // core::Rail describes this function. `now` counts registrations: the work cannot use later ones.
  std::size_t post(const core::Work& work, PeerMemory& peer, std::uint64_t now);
  // core::DirectMover describes these functions. Threads: several at once.
  static bool fits(std::span<const core::Op> ops);
  core::DirectMover::Outcome copyNow(const core::Work& work, PeerMemory& peer, std::uint64_t now,
                                     core::DirectMover::Progress& so_far,
                                     const std::atomic<bool>& pause);
  void poll(core::Completions& out, const std::atomic<bool>& pause);
  void collect(core::Completions& out);
  void cancel(const core::Sink& sink);
  bool busy() const { return used_ != 0; }

  // Ends all works for that peer. On return no thread copies for them, and `out` has them.
  void close(const PeerMemory& peer, core::Completions& out);
  // Waits until the helpers have finished the chunks that they were copying at the call.
  void drain();

  unsigned threads() const { return threads_; }

 private:
  static constexpr unsigned kJobs = 64;
  struct CopyJob;

  std::uint64_t nextNumber() { return posts_.fetch_add(1, std::memory_order_relaxed) + 1; }
  unsigned claim();
  void release(unsigned index);
  void open(unsigned index, std::uint64_t bytes);
  void shut(unsigned index);
  core::DirectMover::Outcome copyChunks(const CopyWork& task, std::span<const core::Op> ops,
                                        core::DirectMover::Progress& so_far,
                                        const std::atomic<bool>& pause);
  bool copyOne(ChunkCopier& copier, unsigned& last);
  static bool take(CopyJob& job, CopyChunk& chunk, bool& last);
  static void copy(CopyJob& job, ChunkCopier& copier, const CopyChunk& chunk);
  static void stop(CopyJob& job, Fault why);
  void copyAtOnce(CopyJob& job, std::uint64_t bytes);
  bool finish(unsigned index, core::Completions& out);
  bool copyFor(Duration time, const std::atomic<bool>& pause, core::Completions& out);
  void finishAll(core::Completions& out);
  void wake(std::uint64_t bytes);
  void helper();

  const unsigned threads_;
  const LiveTable& here_;
  const base::AdaptiveCopy::Strategy strategy_;  // for works larger than one chunk
  std::atomic<std::uint64_t> posts_{0};
  ChunkCopier copier_;      // of the thread that polls
  unsigned last_ = 0;       // index of the job that it served last; the next one comes first
  std::uint64_t used_ = 0;  // jobs that post() has begun, and poll() has not yet returned
  std::uint64_t over_at_once_ = 0;  // jobs among them that post() has copied already
  std::unique_ptr<std::array<CopyJob, kJobs>> jobs_;
  // The jobs in `used_`, and those of threads inside copyNow().
  alignas(64) std::atomic<std::uint64_t> claimed_{0};
  // Jobs that may have untaken chunks. Only a thread inside the job clears its bit, or the job's
  // owner before it gives the place to another job. So no late thread clears the bit of the next
  // job in the same place.
  alignas(64) std::atomic<std::uint64_t> ready_{0};
  alignas(64) std::atomic<std::uint32_t> bell_{0};  // changes when helpers should look for work
  std::atomic<bool> over_{false};
  Gate indoors_;  // helpers enter it around each chunk
  std::vector<std::jthread> helpers_;
};

}  // namespace viaduct::local
