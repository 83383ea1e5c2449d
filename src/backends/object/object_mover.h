// The thread that moves bytes to and from objects, and the posts that it works on. Threads: the
// agent's calls under its lock, one at a time; look() and giveUp() from any. The thread never calls
// the agent.
#pragma once

#include <viaduct/deadline.h>

#include <atomic>
#include <condition_variable>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <thread>
#include <vector>

#include "backends/object/assembly.h"
#include "backends/object/object_options.h"
#include "backends/object/requests.h"
#include "core/op.h"
#include "move/job_table.h"

namespace viaduct::object {

class ObjectMover final : private move::Carrier {
 public:
  // `grace`: how long the destructor waits for uploads that are being aborted.
  static Result<std::unique_ptr<ObjectMover>> open(const ObjectOptions& options, Duration grace);
  ~ObjectMover();
  ObjectMover(const ObjectMover&) = delete;
  ObjectMover& operator=(const ObjectMover&) = delete;

  // Asks the store for an object's size and version. Blocks.
  Result<ObjectFacts> look(const s3::ObjectName& name, Deadline until);
  // Does what core::Storage describes for giveUp().
  void giveUp(std::uint64_t whole);

  // Objects that later posts may name. dropPin() deletes a temporary one.
  void addPin(std::uint32_t slot, ObjectPin pin);
  void dropPin(std::uint32_t slot);

  // core::Rail, core::Link and core::Backend describe these functions.
  std::size_t post(const core::Work& work);
  void poll(core::Completions& out);
  void cancel(const core::Sink& sink) { jobs_.cancel(sink); }
  void close(const core::Link& link, core::Completions& out) { jobs_.close(link, *this, out); }
  Status unpin(std::uint32_t slot) { return jobs_.withdraw(slot, *this); }
  std::function<bool()> settling() const { return jobs_.settling(); }
  bool idle() const { return jobs_.empty(); }
  int eventFd() const { return event_.get(); }  // readable after posts have ended
  void drainEvent() const;

 private:
  static constexpr std::uint32_t kMostJobs = 64;
  struct ObjectJob : move::Job {
    std::atomic<bool> stopped{false};
    // Only the thread uses these. `tasks` is empty for a work with core::Work::whole, whose tasks
    // the assemblies have.
    std::vector<std::shared_ptr<Task>> tasks = {};
    std::size_t open = 0;
  };
  struct Report {
    ObjectJob* job = nullptr;
    std::optional<Error> why = {};
  };
  struct Look {
    std::shared_ptr<Task> task;
    std::optional<Result<ObjectFacts>> result;
    bool left = false;  // nobody waits for the result any more; under the mutex
  };

  // The bytes of a work that lie in one pinned object.
  struct ObjectPieces {
    ObjectPin pin;
    bool writes = false;
    std::vector<ObjectPiece> pieces = {};
  };

  explicit ObjectMover(Duration grace);
  // move::Carrier describes the next two functions.
  void stop(move::Job& job) override;
  void progressUntil(Clock::time_point until) override;
  void takeReports();
  Result<ObjectFacts> ask(std::shared_ptr<Task> task, Deadline until);
  void run();
  void takeInbox(bool& stopping);
  void dropLooks();
  void begin(ObjectJob& job);
  void assemble(ObjectJob& job);
  Result<std::map<std::uint32_t, ObjectPieces>> groupsOf(const core::Work& work);
  Result<std::vector<std::shared_ptr<Task>>> tasksOf(const core::Work& work);
  void taskEnded(const std::shared_ptr<Task>& task, std::optional<Error> why);
  void end(ObjectJob& job, std::optional<Error> why);
  void endStopped(ObjectJob& job);

  const Duration grace_;
  std::uint64_t part_ = 0;
  base::Fd event_;
  std::unique_ptr<Requests> requests_;        // the thread's
  std::unique_ptr<Assemblies> assemblies_;    // the thread's
  move::JobTable jobs_;                       // the agent's
  std::vector<Report> taken_;                 // the agent's
  std::vector<ObjectJob*> running_;           // the thread's
  std::vector<std::shared_ptr<Look>> looks_;  // the thread's

  std::mutex mutex_;  // guards the members below
  std::condition_variable reported_;
  std::vector<ObjectJob*> inbox_;
  std::vector<std::shared_ptr<Look>> asked_;
  std::vector<std::uint64_t> given_up_;
  std::vector<Report> reports_;
  std::map<std::uint32_t, ObjectPin> pins_;
  std::vector<s3::ObjectName> removals_;
  bool stopping_ = false;

  std::thread thread_;
};

}  // namespace viaduct::object
