// Moves the ops of all transfers between host memory and files, on one thread of its own. Threads:
// start() from any; the other public functions one at a time, under the agent's lock. The mover's
// thread shares the jobs and the pins with them, under a mutex that is held for microseconds.
#pragma once

#include <viaduct/deadline.h>
#include <viaduct/settings.h>

#include <array>
#include <atomic>
#include <condition_variable>
#include <cstdint>
#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <string_view>
#include <thread>
#include <vector>

#include "backends/file/pieces.h"
#include "backends/file/target.h"
#include "base/fd.h"
#include "core/op.h"

namespace viaduct::file {

// Opens an engine, on the thread that uses it. `name` is that of the setting: auto, uring, threads.
// Null: `why` has the reason.
using OpenEngine = std::function<std::unique_ptr<Engine>(std::string_view name, std::uint32_t depth,
                                                         std::uint32_t files, std::string& why)>;
std::unique_ptr<Engine> openEngine(std::string_view name, std::uint32_t depth, std::uint32_t files,
                                   std::string& why);

class Mover : public std::enable_shared_from_this<Mover> {
 public:
  // Tests pass another engine.
  explicit Mover(const Settings& settings, OpenEngine open = openEngine);
  Mover(const Mover&) = delete;
  Mover& operator=(const Mover&) = delete;

  // Starts the thread and its engine, at the first call. Returns when the engine is open.
  Status start();
  // Ends the thread, or leaves a thread behind that is stuck in the kernel. It ends by itself.
  void stop();
  // "uring" or "threads", once start() has returned.
  bool usesUring() const { return uses_uring_; }

  // As core::Backend.
  void pin(std::uint32_t slot, Target target);
  Status unpin(std::uint32_t slot);
  const Target* find(std::uint32_t slot) const;

  // As core::Rail.
  std::size_t post(const core::Work& work);
  void poll(core::Completions& out);
  void cancel(const core::Sink& sink);
  bool hasEnded() const { return ended_count_.load(std::memory_order_acquire) != 0; }
  // Readable after jobs have ended, until clearBell(). Once started.
  int bell() const { return bell_.get(); }
  void clearBell();

  // As core::Link::close. Jobs with pieces that the kernel does not give back soon are in `out` as
  // well, and count as stuck until it does.
  void close(const core::Link& link, core::Completions& out);
  // Whether the kernel may still touch memory of a job or pin that has ended.
  std::function<bool()> settling() const;

 private:
  static constexpr std::uint32_t kJobs = 64;
  // In flight. The kernel does not give up a read or write that the disk has, so a cancel waits for
  // these bytes. A disk of 200 MB/s needs 0.17 s.
  static constexpr std::uint64_t kMostInFlight = std::uint64_t{32} << 20U;

  // The ops of one post.
  struct Job {
    enum class State : std::uint8_t { kFree, kRuns, kEnded } state = State::kFree;
    std::uint64_t serial = 0;
    core::Work work = {};      // its ops are read only while the job cuts more
    std::uint64_t born = 0;    // the job cannot use later registrations
    std::size_t next = 0;      // the first op that is not cut up
    std::uint64_t cut = 0;     // its bytes that are
    std::uint32_t pieces = 0;  // in flight
    std::uint64_t moved = 0;   // bytes
    bool stopped = false;      // nothing more is cut
    bool ask_kernel = false;   // to end the pieces early
    bool left = false;         // close() has reported it
    std::optional<Error> why = {};
    bool cutsMore() const { return state == State::kRuns && !stopped && next < work.ops.size(); }
    bool isOver() const { return state == State::kRuns && !cutsMore() && pieces == 0; }
  };
  struct Slot {
    std::unique_ptr<Target> target = {};
    std::uint64_t born = 0;
    std::optional<Clock::time_point> leaving = {};  // when unpin() was first asked
  };

  // With the mutex held.
  bool cutOne(Job& job, Piece& out);
  void cutUp(std::uint32_t room);
  Status aim(const Job& job, const core::Op& op, Piece& out);
  void stopJob(Job& job, std::optional<Error> why);
  void account(Pieces::Finished& finished);
  void endIfOver(Job& job);
  void report(Job& job, core::Completions& out);
  Error finalError(const Job& job) const;
  void drop(std::unique_ptr<Target> target);
  bool mayEnd() const;
  void letThreadLook();
  std::uint64_t bitOf(const Job& job) const {
    return std::uint64_t{1} << static_cast<std::size_t>(&job - jobs_.data());
  }

  void run(std::shared_ptr<Mover> self);
  bool prepare();
  void carryOut();

  const std::string wanted_;
  const Pieces::Limits limits_;
  const Duration patience_, grace_;
  const OpenEngine open_;
  base::Fd bell_;  // opened by start()
  // Jobs and pins that have ended here, but not yet in the kernel.
  const std::shared_ptr<std::atomic<std::uint32_t>> stuck_ =
      std::make_shared<std::atomic<std::uint32_t>>(0);

  mutable std::mutex mutex_;
  std::condition_variable changed_;  // the thread's state, or a job has ended
  enum class Phase : std::uint8_t { kNone, kStarts, kRuns, kOver } phase_ = Phase::kNone;
  bool stopping_ = false, sleeps_ = false;
  std::optional<Error> start_error_;
  std::atomic<bool> uses_uring_{false};
  std::thread thread_;
  std::array<Job, kJobs> jobs_;
  std::uint64_t running_ = 0;    // bit i: jobs_[i] runs
  std::uint32_t turn_ = 0;       // the job that is cut next
  std::uint64_t in_flight_ = 0;  // bytes
  std::uint64_t serials_ = 0, births_ = 0;
  std::vector<Slot> slots_;
  // Targets without a slot: with pieces in flight, and without.
  std::vector<std::unique_ptr<Target>> leaving_, gone_;
  std::vector<const Target*> withdrawn_;  // whose pieces the kernel is to end early
  std::vector<std::uint32_t> ended_;      // jobs that poll() has to report
  std::atomic<std::uint32_t> ended_count_{0};

  // Used only by the mover's thread.
  std::unique_ptr<Pieces> pieces_;
  std::vector<Pieces::Finished> finished_;
  std::vector<Piece> cut_;
  std::vector<std::uint32_t> cancelled_jobs_;
  std::vector<const Target*> cancelled_targets_;
  std::vector<std::unique_ptr<Target>> forgotten_;
};

}  // namespace viaduct::file
