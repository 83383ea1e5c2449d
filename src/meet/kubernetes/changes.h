// Tells waiting calls of this process when the Lease of a name has changed, over one list and one
// watch for all of them. The watch selects the names of these calls, and ends soon after the last
// call. Threads: any; one of its own while calls wait.
#pragma once

#include <viaduct/deadline.h>
#include <viaduct/result.h>

#include <condition_variable>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <thread>
#include <vector>

#include "meet/kubernetes/client.h"
#include "meet/kubernetes/objects.h"
#include "meet/wait.h"

namespace viaduct::meet::kubernetes {

class Changes {
 public:
  Changes(std::shared_ptr<Client> client, std::string group_label);
  ~Changes();
  Changes(const Changes&) = delete;
  Changes& operator=(const Changes&) = delete;

  // One call's interest in one name. Threads: one.
  class Waiter {
   public:
    Waiter(Changes& changes, const std::string& name_label);
    ~Waiter();
    Waiter(const Waiter&) = delete;
    Waiter& operator=(const Waiter&) = delete;
    // Returns when the Lease exists in another version than `known`, or at its deletion if
    // `or_gone`. The caller then reads the Lease, because a watch may lag behind. Never returns
    // twice for one version.
    Status wait(const std::string& known, bool or_gone, const Wait& wait);

   private:
    Changes& changes_;
    const std::string lease_;
    std::optional<std::string> told_;
  };

 private:
  struct Name {
    std::string label = {};
    std::size_t waiting = 0;
    std::optional<std::string> version = {};  // nothing: not known yet; empty: there is no Lease
    std::optional<Error> error = {};          // why no news will come
    std::condition_variable changed = {};
  };
  using Names = std::map<std::string, Name, std::less<>>;

  void run();
  bool waitForWork();
  std::string select();
  bool covers(std::string_view lease) const;
  bool coversAll() const;
  bool goesOn();
  Result<std::string> list(const std::string& selector);
  void listed(const std::vector<Seen>& leases);
  void follow(const std::string& selector, std::string version);
  std::optional<Client::StreamEnd> take(std::string_view text, const LeaseRequest& request,
                                        std::string& version);
  void changed(const WatchEvent& event);
  void failed(Error why, bool again);  // `again`: another try follows
  void pause(Duration time);

  const std::shared_ptr<Client> client_;
  const std::string group_label_;
  Pace pace_;
  std::atomic<bool> stop_ = false;
  std::mutex mutex_;
  std::condition_variable work_;  // for the thread
  Names names_;
  std::size_t waiting_ = 0;                     // the number of waits, for all names
  Clock::time_point idle_at_ = {};              // when the last wait has ended
  bool covers_group_ = false;                   // the watch has all names
  std::set<std::string, std::less<>> covered_;  // otherwise, the names of these Leases
  std::optional<Error> trouble_;  // why the last try failed, after which another one follows
  std::unique_ptr<Channel> channel_;
  std::thread thread_;
};

}  // namespace viaduct::meet::kubernetes
