// The one thread of a process's etcd: it runs HTTP exchanges, timers and tasks, asleep on file
// descriptors in between. Threads: open(), post() and the destructor from any; all else, and
// whatever it calls, in the loop's own.
#pragma once

#include <viaduct/deadline.h>
#include <viaduct/result.h>

#include <functional>
#include <map>
#include <memory>
#include <thread>
#include <unordered_map>
#include <vector>

#include "base/guarded.h"
#include "meet/etcd/exchange.h"

namespace viaduct::meet::etcd {

class CurlLoop {
 public:
  using Id = std::uint64_t;  // 0: none

  static Result<std::unique_ptr<CurlLoop>> open(Tls tls);
  // Ends the thread. What is under way is dropped without a word, and its closures with it.
  ~CurlLoop();
  CurlLoop(const CurlLoop&) = delete;
  CurlLoop& operator=(const CurlLoop&) = delete;

  void post(std::function<void()> task);

  Id at(Clock::time_point when, std::function<void()> run);
  void forget(Id timer);
  // `done` runs later, never inside start(); drop(): neither it nor `line` runs any more.
  Id start(CurlRequest request);
  void drop(Id exchange);

 private:
  using Timers = std::multimap<Clock::time_point, std::pair<Id, std::function<void()>>>;

  CurlLoop(const CurlLibrary& curl, Tls tls);
  void run();
  bool turn();  // false: the end
  void runTimers();
  void deliverLines();
  void deliverEnds();
  void end(Id id, CurlAnswer answer);
  int sleepFor() const;

  const CurlLibrary& curl_;
  Tls tls_;
  std::unique_ptr<CURLM, decltype(CurlLibrary::curl_multi_cleanup)> multi_;
  struct Inbox {
    std::vector<std::function<void()>> tasks;
    bool stop = false;
  };
  base::Guarded<Inbox> inbox_;
  struct Running {
    std::unique_ptr<Exchange> exchange;
    Id timer = 0;
  };
  std::unordered_map<Id, Running> running_;
  Timers timers_;
  std::unordered_map<Id, Timers::iterator> timer_by_id_;
  Id last_id_ = 0;
  std::thread thread_;
};

}  // namespace viaduct::meet::etcd
