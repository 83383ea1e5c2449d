// The requests in flight, waiting and to be repeated, over libcurl's multi interface. Threads: the
// mover's; only wake() may be called from any.
#pragma once

#include <viaduct/deadline.h>

#include <atomic>
#include <deque>
#include <functional>
#include <memory>
#include <optional>
#include <vector>

#include "backends/object/object_options.h"
#include "backends/object/task.h"
#include "base/random.h"

namespace viaduct::object {

class Requests {
 public:
  // Gets each task that has ended: its error, or nothing.
  using TaskEnded =
      std::function<void(const std::shared_ptr<Task>& task, std::optional<Error> why)>;

  static Result<std::unique_ptr<Requests>> open(const ObjectOptions& options, TaskEnded ended);
  ~Requests();
  Requests(const Requests&) = delete;
  Requests& operator=(const Requests&) = delete;

  // `stop`: set once nobody waits for the task any more. No further request of the task begins
  // then.
  void add(const std::shared_ptr<Task>& task, const std::atomic<bool>* stop);
  // Ends the task's requests. On return none touches memory. An upload that has begun is aborted in
  // the background.
  void drop(const std::shared_ptr<Task>& task);
  // Aborts an upload in the background. An empty `upload` means that there is none.
  void abort(const s3::ObjectName& name, std::string upload);
  // Deletes an object in the background.
  void remove(const s3::ObjectName& name);
  // Makes progress, and sleeps until there is more to do, at most until `until`.
  void turn(Clock::time_point until);
  void wake();
  // Whether uploads are still to be aborted, or objects to be deleted.
  bool tidying() const { return tidying_ != 0; }
  // Logs each abort and each deletion that is not done.
  void sayWhatIsLeft() const;

 private:
  struct Request {
    std::shared_ptr<Task> task;
    Ask ask = {};
    const std::atomic<bool>* stop = nullptr;
    std::uint32_t attempt = 0;
    Clock::time_point when = {};  // the request begins no earlier
    bool orphan = false;  // its task was dropped, and only its upload id counts; or it tidies up
  };
  struct ActiveRequest {
    Request request;
    std::chrono::system_clock::time_point signed_at = {};
    s3::MemoryStream memory;
    std::unique_ptr<s3::Exchange> exchange = {};
  };

  Requests(const base::CurlLibrary& curl, const ObjectOptions& options, TaskEnded ended,
           base::CheckedCopy copy);
  std::string operationOf(const Request& request) const;
  void startReady();
  bool start(Request request);
  std::optional<std::string> hashOf(ActiveRequest& flight) const;
  s3::HttpRequest signedRequest(ActiveRequest& flight, std::string_view hash) const;
  void collect();
  void settle(Request request, const s3::Answer& answer,
              std::chrono::system_clock::time_point signed_at);
  void fail(const Request& request, Error why);
  void settleOrphan(const Request& request, const s3::Answer& answer, bool failed,
                    const Error* why);
  void sayRetry(const Error& why, std::uint32_t attempt, Duration wait);
  Duration backOff(std::uint32_t attempt);
  void release(std::size_t flight);

  const base::CurlLibrary& curl_;
  const ObjectOptions options_;
  const TaskEnded ended_;
  const base::CheckedCopy copy_;
  std::unique_ptr<CURLM, decltype(base::CurlLibrary::curl_multi_cleanup)> multi_;
  std::deque<Request> ready_;
  std::vector<Request> later_;
  std::vector<std::unique_ptr<ActiveRequest>> flights_;
  std::vector<std::unique_ptr<s3::Exchange>> idle_;
  std::size_t tidying_ = 0;
  base::Random random_;
  Clock::time_point warn_after_ = {};
};

}  // namespace viaduct::object
