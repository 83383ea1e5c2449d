// The thread that moves bytes to and from objects, and the posts that it works on. Threads: the
// agent's calls under its lock, one at a time; look() and giveUp() from any. The thread never calls
// the agent.
#pragma once

#include <viaduct/deadline.h>

#include <array>
#include <atomic>
#include <condition_variable>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <thread>
#include <vector>

#include "backends/object/assembly.h"
#include "backends/object/options.h"
#include "backends/object/requests.h"
#include "core/op.h"

namespace viaduct::object {

class Mover {
 public:
  // `grace`: how long the destructor waits for uploads that are being aborted.
  static Result<std::unique_ptr<Mover>> open(const Options& options, Duration grace);
  ~Mover();
  Mover(const Mover&) = delete;
  Mover& operator=(const Mover&) = delete;

  // Asks the store for an object's size and version. Blocks.
  Result<ObjectFacts> look(const s3::ObjectName& name, Deadline until);
  // As Storage::giveUp().
  void giveUp(std::uint64_t whole);

  // Objects that later posts may name. dropPin() deletes a temporary one.
  void addPin(std::uint32_t slot, ObjectPin pin);
  void dropPin(std::uint32_t slot);

  // Takes all ops, or none if there is no room.
  bool post(const core::Work& work);
  void cancel(const core::Sink& sink);
  // Cancels the posts that touch a pin. True: there is none any more.
  bool cancelPin(std::uint32_t slot);
  // Ends the link's posts. On return nobody touches memory for them, and `out` has them.
  void close(const core::Link* link, core::Completions& out);
  void poll(core::Completions& out);
  bool idle() const { return used_ == 0; }
  int eventFd() const { return event_.get(); }  // readable after posts have ended
  void drainEvent() const;

 private:
  static constexpr unsigned kJobs = 64;
  // A post. The agent writes it before the mover gets it, and after the mover has reported it.
  struct Job {
    core::Work work;
    bool used = false;
    std::atomic<bool> stop{false};
    // The mover's. Empty for a work with a number: the assemblies have its tasks.
    std::vector<std::shared_ptr<Task>> tasks;
    std::size_t open = 0;
  };
  struct Report {
    unsigned job = 0;
    std::optional<Error> why;
  };
  struct Look {
    std::shared_ptr<Task> task;
    std::optional<Result<ObjectFacts>> result;
    bool left = false;  // nobody waits for the result any more; under the mutex
  };

  // The bytes of a work that are of one pinned object.
  struct Group {
    ObjectPin pin;
    bool writes = false;
    std::vector<Piece> pieces = {};
  };

  explicit Mover(Duration grace) : grace_(grace) {}
  Result<ObjectFacts> ask(std::shared_ptr<Task> task, Deadline until);
  void run();
  void takeInbox(bool& stopping);
  void dropLooks();
  void begin(unsigned index);
  void assemble(unsigned index);
  Result<std::map<std::uint32_t, Group>> groupsOf(const core::Work& work);
  Result<std::vector<std::shared_ptr<Task>>> tasksOf(const core::Work& work);
  void taskEnded(const std::shared_ptr<Task>& task, std::optional<Error> why);
  void end(unsigned index, std::optional<Error> why);
  void stop(unsigned index);
  template <class Match>
  bool stopWhere(Match match);
  void complete(const Report& report, core::Completions& out);

  const Duration grace_;
  std::uint64_t part_ = 0;
  base::Fd event_;
  std::unique_ptr<Requests> requests_;    // the thread's
  std::optional<Assemblies> assemblies_;  // the thread's
  std::array<Job, kJobs> jobs_;
  unsigned used_ = 0;                         // the agent's count of jobs
  std::vector<Report> taken_;                 // the agent's
  std::vector<unsigned> running_;             // the thread's
  std::vector<std::shared_ptr<Look>> looks_;  // the thread's

  std::mutex mutex_;  // of the members below
  std::condition_variable reported_;
  std::vector<unsigned> inbox_;
  std::vector<std::shared_ptr<Look>> asked_;
  std::vector<std::uint64_t> given_up_;
  std::vector<Report> reports_;
  std::map<std::uint32_t, ObjectPin> pins_;
  std::vector<s3::ObjectName> removals_;
  bool stopping_ = false;

  std::thread thread_;
};

}  // namespace viaduct::object
