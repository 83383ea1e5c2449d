// Moves the ops of all transfers between host memory and files. It has no thread: a post submits,
// and a poll takes what has ended and submits more. Threads: prepare() and settling() from any; the
// other public functions one at a time, under the agent's lock.
#pragma once

#include <viaduct/deadline.h>
#include <viaduct/settings.h>

#include <atomic>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "backends/file/file_target.h"
#include "backends/file/pieces.h"
#include "base/mutex.h"
#include "core/op.h"
#include "move/class_queue.h"
#include "move/job_table.h"

namespace viaduct::file {

// Opens an engine. `name` is that of the setting: auto, uring, threads.
using OpenEngine = std::function<Result<std::unique_ptr<Engine>>(
    std::string_view name, std::uint32_t depth, std::uint32_t files)>;
Result<std::unique_ptr<Engine>> openEngine(std::string_view name, std::uint32_t depth,
                                           std::uint32_t files);

class FileMover final : public std::enable_shared_from_this<FileMover>, private move::Carrier {
 public:
  // Tests pass another engine.
  explicit FileMover(const Settings& settings, OpenEngine open = openEngine);
  ~FileMover();
  FileMover(const FileMover&) = delete;
  FileMover& operator=(const FileMover&) = delete;

  // Opens the engine, at the first call.
  Status prepare();
  // Takes over the engine that prepare() has opened. Returns the descriptors that are readable
  // while poll() has something to do.
  std::vector<int> start();
  // Ends all jobs. Reads and writes that the kernel does not give back stay behind with a thread
  // that waits for them.
  void stop();
  // "uring" or "threads", once started.
  bool usesUring() const { return pieces_ && pieces_->engine().name() == "uring"; }

  // core::Backend describes pin() and unpin().
  void pin(std::uint32_t slot, FileTarget target);
  Status unpin(std::uint32_t slot);
  FileTarget* find(std::uint32_t slot) const;  // null: there is none, or it is being released

  // core::Rail describes these functions.
  std::size_t post(const core::Work& work);
  void poll(core::Completions& out);
  void collect(core::Completions& out) { jobs_.takeReports(out); }
  void cancel(const core::Sink& sink) { jobs_.cancel(sink); }
  bool busy() const { return jobs_.hasReports() || goes_on_; }

  // core::Link describes close() and settling().
  void close(const core::Link& link, core::Completions& out) { jobs_.close(link, *this, out); }
  std::function<bool()> settling() const { return jobs_.settling(); }

 private:
  static constexpr std::uint32_t kMostJobs = 64;
  // The pieces that one call submits. Each costs a microsecond or two, and a large piece that lies
  // in many pages costs ten times as much.
  static constexpr std::uint32_t kMostAtOnce = 64;
  // The most bytes in flight. The kernel does not give up a read or write that the disk has, so a
  // cancel waits for these bytes. A disk of 200 MB/s needs 0.17 s for them.
  static constexpr std::uint64_t kMostInFlight = std::uint64_t{32} << 20U;

  // move::Carrier describes the next two functions.
  void stop(move::Job& job) override;
  void progressUntil(Clock::time_point until) override;
  void progress();
  void cutUp();
  bool cutOne(move::Job& job, FilePiece& out);
  Status aim(const move::Job& job, const core::Op& op, FilePiece& out);
  void account(Pieces::FinishedPiece& finished);
  void drop(std::unique_ptr<FileTarget> target);
  void waitForEvent(Clock::time_point until) const;
  void leaveBehind();

  const std::string wanted_;
  const Pieces::Limits limits_;
  const OpenEngine open_;

  base::Mutex preparing_;
  std::unique_ptr<Engine> prepared_ VIADUCT_GUARDED_BY(preparing_);
  bool is_prepared_ VIADUCT_GUARDED_BY(preparing_) = false;

  std::unique_ptr<Pieces> pieces_;  // null until start()
  bool stopping_ = false;
  bool goes_on_ = false;  // poll() has more to submit, without an event
  move::JobTable jobs_;
  move::ClassQueue ready_;       // jobs with ops left to cut; the next job in turn comes first
  std::uint64_t in_flight_ = 0;  // bytes
  std::vector<std::unique_ptr<FileTarget>> targets_;  // by slot
  std::vector<std::unique_ptr<FileTarget>> stuck_;    // without a slot, but with pieces in flight
  std::vector<Pieces::FinishedPiece> finished_;
};

}  // namespace viaduct::file
