// Moves the ops of all transfers between host memory and files. It has no thread: a post submits,
// and a poll takes what has ended and submits more. Threads: prepare() and settling() from any; the
// other public functions one at a time, under the agent's lock.
#pragma once

#include <viaduct/deadline.h>
#include <viaduct/settings.h>

#include <array>
#include <atomic>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "backends/file/pieces.h"
#include "backends/file/target.h"
#include "base/mutex.h"
#include "core/op.h"

namespace viaduct::file {

// Opens an engine. `name` is that of the setting: auto, uring, threads.
using OpenEngine = std::function<Result<std::unique_ptr<Engine>>(
    std::string_view name, std::uint32_t depth, std::uint32_t files)>;
Result<std::unique_ptr<Engine>> openEngine(std::string_view name, std::uint32_t depth,
                                           std::uint32_t files);

class Mover : public std::enable_shared_from_this<Mover> {
 public:
  // Tests pass another engine.
  explicit Mover(const Settings& settings, OpenEngine open = openEngine);
  ~Mover();
  Mover(const Mover&) = delete;
  Mover& operator=(const Mover&) = delete;

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

  // As core::Backend.
  void pin(std::uint32_t slot, Target target);
  Status unpin(std::uint32_t slot);
  const Target* find(std::uint32_t slot) const;

  // As core::Rail.
  std::size_t post(const core::Work& work);
  void poll(core::Completions& out);
  void collect(core::Completions& out);
  void cancel(const core::Sink& sink);
  bool busy() const { return !ended_.empty() || goes_on_; }

  // As core::Link::close. Jobs with pieces that the kernel does not give back soon are in `out` as
  // well, and count as stuck until it does.
  void close(const core::Link& link, core::Completions& out);
  // Whether the kernel may still touch memory of a job or pin that has ended.
  std::function<bool()> settling() const;

 private:
  static constexpr std::uint32_t kJobs = 64;
  // The pieces that one call submits. Each costs a microsecond or two, and a large one in many
  // pages ten times as much.
  static constexpr std::uint32_t kMostAtOnce = 64;
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

  void progress();
  void cutUp();
  bool cutOne(Job& job, Piece& out);
  Status aim(const Job& job, const core::Op& op, Piece& out);
  void stopJob(Job& job, std::optional<Error> why);
  void account(Pieces::Finished& finished);
  void endIfOver(Job& job);
  void report(Job& job, core::Completions& out);
  Error finalError(const Job& job) const;
  void drop(std::unique_ptr<Target> target);
  void waitForEvent(Clock::time_point until) const;
  void waitUntil(const std::function<bool()>& done);
  void leaveBehind();
  std::uint32_t numberOf(const Job& job) const {
    return static_cast<std::uint32_t>(&job - jobs_.data());
  }
  std::uint64_t bitOf(const Job& job) const { return std::uint64_t{1} << numberOf(job); }

  const std::string wanted_;
  const Pieces::Limits limits_;
  const Duration patience_, grace_;
  const OpenEngine open_;
  // Jobs and pins that have ended here, but not yet in the kernel.
  const std::shared_ptr<std::atomic<std::uint32_t>> stuck_ =
      std::make_shared<std::atomic<std::uint32_t>>(0);

  base::Mutex preparing_;
  std::unique_ptr<Engine> prepared_ VIADUCT_GUARDED_BY(preparing_);
  bool is_prepared_ VIADUCT_GUARDED_BY(preparing_) = false;

  std::unique_ptr<Pieces> pieces_;  // null until start()
  bool stopping_ = false;
  bool goes_on_ = false;  // poll() has more to submit, without an event
  std::array<Job, kJobs> jobs_;
  std::uint64_t running_ = 0;    // bit i: jobs_[i] runs
  std::uint32_t turn_ = 0;       // the job that is cut next
  std::uint64_t in_flight_ = 0;  // bytes
  std::uint64_t serials_ = 0, births_ = 0;
  std::vector<Slot> slots_;
  std::vector<std::unique_ptr<Target>> leaving_;  // without a slot, but with pieces in flight
  std::vector<std::uint32_t> ended_;              // jobs that poll() has to report
  std::vector<Pieces::Finished> finished_;
};

}  // namespace viaduct::file
