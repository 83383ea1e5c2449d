// The keys of this process at one etcd. All of them have one lease, which one thread renews. The
// lease ends with the last key. Threads: any; one of its own once there is a key.
#pragma once

#include <viaduct/deadline.h>
#include <viaduct/result.h>

#include <chrono>
#include <condition_variable>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <string_view>
#include <thread>
#include <vector>

#include "meet/etcd/client.h"

namespace viaduct::meet::etcd {

struct KeptKey {
  std::string key = {}, record = {};
  // Called by the keeper's thread when the key may belong to another process. If empty, the thread
  // creates the key again.
  std::function<void(const Error&)> lost = {};
};

class Keeper {
 public:
  // `root`: the prefix of the keeper's own keys.
  Keeper(std::shared_ptr<Client> client, std::string root, std::chrono::seconds lease_time)
      : client_(std::move(client)), root_(std::move(root)), time_(lease_time) {}
  ~Keeper();
  Keeper(const Keeper&) = delete;
  Keeper& operator=(const Keeper&) = delete;

  using KeyPtr = std::shared_ptr<const KeptKey>;
  // Creates the key. False: it exists already, perhaps in this process. After an error, etcd has
  // no such key, or will remove it soon.
  Result<bool> create(const KeyPtr& key, const Wait& wait);
  // Removes the key, and waits for etcd a second at most. No call of `lost` follows.
  void remove(const KeyPtr& key);
  void removeSoon(const KeyPtr& key);

 private:
  using Lock = std::unique_lock<std::mutex>;
  struct Held {
    KeyPtr key = {};
    LeaseId lease = 0;  // with which the key was created; 0: not yet
    bool leaving = false;
  };
  // A request that may have been carried out, or still may be.
  struct GivenUp {
    std::string key = {};
    std::string tombstone = {};  // the key that makes a late request fail; empty: none
    LeaseId lease = 0;
  };

  Result<bool> make(const KeptKey& key, const Wait& wait);
  Result<CreateReply> tryCreate(const KeptKey& key, const GivenUp& request, const Wait& wait);
  Result<LeaseId> lease(const Wait& wait);
  Result<LeaseId> grant(const Wait& wait);
  void removeNow(const KeyPtr& key);
  Status undo(const GivenUp& request, const Wait& wait);
  Status undoGivenUp(std::string_view key, const Wait& wait);

  Status start();
  void run();
  bool isStale(const Held& held) const { return held.lease != 0 && held.lease != lease_; }
  Clock::time_point nextTurn() const;
  void renew(Lock& lock);
  Result<bool> keepAlive(LeaseId id, Clock::time_point until);
  void lose(Lock& lock, const Error& why, bool all);
  void makeAgain(Lock& lock);
  template <class F>
  void withBusy(Lock& lock, const KeyPtr& key, F&& work);
  template <class Which>
  std::vector<KeyPtr> keysThat(Which&& which) const;

  const std::shared_ptr<Client> client_;
  const std::string root_;
  const std::chrono::seconds time_;
  base::StopFlag stop_ = false;

  std::mutex mutex_;  // guards all members below but the thread
  std::condition_variable changed_;
  std::map<std::string, Held> keys_;
  std::vector<GivenUp> given_up_;
  LeaseId lease_ = 0;  // 0: none
  bool granting_ = false;
  std::uint64_t tries_ = 0;
  Clock::time_point kept_at_ = {};  // the lease was alive then
  Clock::time_point renew_at_ = {}, again_at_ = {};
  const KeptKey* busy_ = nullptr;  // the thread's key, while it works without the lock
  std::thread thread_;
};

}  // namespace viaduct::meet::etcd
