// Keeps the names of this process at a TCPStore: answers the questions of readers whether their
// owner lives, and publishes the names again at a store that has lost them. Sleeps while nobody
// asks. Threads: any; one thread of its own.
#pragma once

#include <viaduct/deadline.h>
#include <viaduct/result.h>

#include <atomic>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <thread>
#include <vector>

#include "base/fd.h"
#include "base/stop.h"
#include "meet/tcpstore/client.h"
#include "meet/tcpstore/head.h"

namespace viaduct::meet::tcpstore {

// A published key.
struct KeptName {
  std::string key = {};
  std::function<void(const Error&)> lost = {};
  std::mutex mutex = {};  // guards the next four; held during calls to the store
  Head head = {};
  bool ours = true;  // the head at the store is ours, as far as we know
  bool over = false;
  // The value before our head, if the store has not answered whether it took the head.
  std::optional<std::string> unsure_after = {};
  base::StopFlag leaving{false};  // ends a call to the store
  std::atomic<bool> withdraw_soon{false};
};

class Keeper {
 public:
  // `lease`: a reader that gets no answer for this time takes the owner for dead.
  Keeper(std::shared_ptr<Client> client, const std::string& root, Duration lease);
  ~Keeper();
  Keeper(const Keeper&) = delete;
  Keeper& operator=(const Keeper&) = delete;

  const std::string& owner() const { return owner_; }
  // Returns once readers can ask. Call it before a head names this owner.
  Status start(const Wait& wait);
  void add(std::shared_ptr<KeptName> name);
  bool keeps(const std::string& key);
  // Withdraws the name, and gives up after a second. No call of `lost` follows.
  void remove(const std::shared_ptr<KeptName>& name);
  // Withdraws a name that the store may have now, or may get from a late query. Returns at once.
  void undo(const std::shared_ptr<KeptName>& name);
  void wake();  // after withdraw_soon was set

 private:
  void run();
  bool connected();
  bool answered();
  Status answer();
  void check();
  void check(KeptName& name);
  void publishAgain(KeptName& name, const std::optional<std::string>& found, const Wait& wait);
  void leave(const std::shared_ptr<KeptName>& name);
  bool withdraw(KeptName& name);
  Result<bool> burn(const KeptName& name, const Wait& wait);
  void withdrawLeft();
  bool hasLeft();
  void withdrawLeaving();
  void checkSilence(const Error& why);
  std::vector<std::shared_ptr<KeptName>> names();
  Limits step() const;
  bool sleepUntil(Clock::time_point until);

  const std::shared_ptr<Client> client_;
  const std::string owner_;
  const OwnerKeys keys_;
  const Duration lease_;
  base::Fd wake_;  // an eventfd
  std::atomic<bool> stopping_{false};
  std::mutex mutex_;  // guards the next three members
  std::map<std::string, std::shared_ptr<KeptName>> names_;
  std::vector<std::shared_ptr<KeptName>> left_;  // given up, but maybe not yet withdrawn
  bool started_ = false;
  // Only the thread uses the members below.
  std::unique_ptr<Connection> connection_;
  std::uint64_t answers_ = 0;
  BackOff pauses_ = Client::pauses();
  Clock::time_point heard_ = {}, checked_ = {};
  std::thread thread_;
};

}  // namespace viaduct::meet::tcpstore
