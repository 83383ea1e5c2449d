// Objects that several works write together, each as one upload whose parts are the works' bytes.
// Threads: the mover's.
#pragma once

#include <viaduct/result.h>

#include <atomic>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "backends/object/requests.h"
#include "backends/object/task.h"
#include "move/job.h"

namespace viaduct::object {

// The number of the part that consists of these bytes of an object. The parts of an object may come
// in any order, so the number follows from the offset alone. All parts but the last have at least
// 8 MiB, and more if the object would have more than 10,000 of them.
Result<std::uint32_t> partNumberOf(const ObjectFacts& object, s3::ByteRange range);

class Assemblies {
 public:
  // Gets each work that has ended: its job, and its error or nothing.
  using EndJob = std::function<void(move::Job& job, std::optional<Error> why)>;
  // `requests` outlives this. `most_part`: as for Task::write().
  Assemblies(Requests& requests, std::uint64_t most_part, EndJob end_job)
      : requests_(requests), most_part_(most_part), end_job_(std::move(end_job)) {}

  // A work that writes a part of an object.
  struct PartWork {
    move::Job* job = nullptr;
    const std::atomic<bool>* stop = nullptr;  // as in Requests::add()
    ObjectPin pin = {};
    std::vector<ObjectPiece> pieces = {};
  };
  // Begins a work of this number (core::Work::whole). A work whose bytes or object do not fit those
  // of the others fails all works of its number.
  void add(std::uint64_t whole, PartWork work);
  // Fails all works of this number, now and later. An upload is aborted in the background.
  void fail(std::uint64_t whole, const Error& why);
  void cancel(std::uint64_t whole);
  // No further work of this number comes. Works that still run are cancelled.
  void giveUp(std::uint64_t whole);
  void giveUpAll();
  // False: the task belongs to no assembly.
  bool taskEnded(const std::shared_ptr<Task>& task, const std::optional<Error>& why);

 private:
  // A work in progress, and its present task: a part, or the completion of the upload. The task is
  // null while the upload is being created.
  struct Running {
    PartWork work;
    std::uint32_t part = 0;  // 0: the work has all bytes of the object
    std::shared_ptr<Task> task = {};
  };
  struct StoredPart {
    s3::ByteRange range;
    std::string etag = {};
  };
  struct Assembly {
    std::shared_ptr<const ObjectFacts> object = {};
    std::map<std::uint32_t, StoredPart> parts = {};  // by number, which is the order of their bytes
    std::uint64_t stored = 0;                        // bytes of the parts that the store has
    std::vector<Running> running = {};
    std::shared_ptr<Task> create = {};  // begins the upload
    std::string upload = {};            // empty: it has not begun, or has ended
    std::shared_ptr<Task> last = {};    // the object exists once this has ended
    std::optional<Error> why = {};      // why the assembly has failed
  };

  static Status accept(Assembly& assembly, Running& running);
  void start(Assembly& assembly, Running& running);
  void advance(Assembly& assembly, std::vector<Running>::iterator at);
  void fail(Assembly& assembly, const Error& why);

  Requests& requests_;
  const std::uint64_t most_part_;
  const EndJob end_job_;
  std::map<std::uint64_t, Assembly> assemblies_;  // by core::Work::whole
};

}  // namespace viaduct::object
