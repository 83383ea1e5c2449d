// The threads that copy: the thread that makes the agent's progress, and helpers that sleep while
// there is no work. Threads: all calls under the agent's lock; the helpers never call the agent.
#pragma once

#include <viaduct/settings.h>

#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <thread>
#include <vector>

#include "backends/local/copy_chunk.h"
#include "backends/local/gate.h"
#include "core/op.h"

namespace viaduct::local {

class CopyPool {
 public:
  // `here`: this process's own registrations. The settings limit the number of copying threads,
  // including the driving one, and choose the copies that bypass the cache.
  CopyPool(const LiveTable& here, const Settings& settings);
  ~CopyPool();
  CopyPool(const CopyPool&) = delete;
  CopyPool& operator=(const CopyPool&) = delete;

  // Starts the helpers, if they are not running: with the first peer, not with every agent.
  void start();

  // Prepares for copies of memory of that size. Call it before the first such job, because a job
  // must not allocate.
  void expect(std::uint64_t bytes) const;

  // As core::Rail. `now` counts registrations: the work cannot use later ones.
  std::size_t post(const core::Work& work, PeerMemory& peer, std::uint64_t now);
  // As core::DirectMover. Threads: several at once.
  static bool fitsChunk(std::span<const core::Op> ops);
  std::optional<std::uint64_t> copyNow(const core::Work& work, PeerMemory& peer,
                                       std::uint64_t now) const;
  void poll(core::Completions& out);
  void cancel(core::Tag tag);
  bool busy() const { return used_ != 0; }

  // Ends all works for that peer. On return no thread copies for them, and `out` has them.
  void close(const PeerMemory& peer, core::Completions& out);
  // Waits until all chunks in progress at the time of the call are finished.
  void drain();

  unsigned threads() const { return threads_; }

 private:
  static constexpr unsigned kJobs = 64;
  struct Job;

  bool copyOne(ChunkCopier& copier, unsigned& last);
  static bool take(Job& job, Chunk& chunk, bool& last);
  static void copy(Job& job, ChunkCopier& copier, const Chunk& chunk);
  static void stop(Job& job, Fault why);
  void copyAtOnce(Job& job, std::uint64_t bytes);
  bool finish(unsigned index, core::Completions& out);
  void collect(core::Completions& out);
  void wake(std::uint64_t bytes);
  void helper();

  const unsigned threads_;
  const LiveTable& here_;
  const base::AdaptiveCopy::Strategy strategy_;  // for works larger than one chunk
  std::uint64_t posts_ = 0;
  ChunkCopier copier_;  // the driving thread's copier
  unsigned last_ =
      0;  // index of the job that the driving thread served last; the next job comes first
  std::uint64_t used_ = 0;          // jobs in flight
  std::uint64_t over_at_once_ = 0;  // jobs among them that post() has copied already
  std::unique_ptr<std::array<Job, kJobs>> jobs_;
  // Jobs that may have untaken chunks. Only a thread inside the job clears its bit, or finish()
  // once no thread can enter. So no late thread clears the bit of the next job in the same place.
  alignas(64) std::atomic<std::uint64_t> ready_{0};
  alignas(64) std::atomic<std::uint32_t> bell_{0};  // changes when helpers should look for work
  std::atomic<bool> over_{false};
  Gate indoors_;  // helpers enter it around each chunk
  std::vector<std::jthread> helpers_;
};

}  // namespace viaduct::local
