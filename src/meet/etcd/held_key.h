// A key that this process owns, with its own lease, which a thread renews. Threads: any.
#pragma once

#include <viaduct/result.h>

#include <functional>
#include <memory>
#include <string>
#include <thread>

#include "meet/etcd/lease.h"
#include "meet/meeting.h"

namespace viaduct::meet::etcd {

class HeldKey final : public PublishedName {
 public:
  struct Options {
    std::string key = {}, value = {};
    std::chrono::milliseconds detect = {};
    // Called by the key's thread when the lease is lost. If empty, the thread creates the key
    // again.
    std::function<void(const Error&)> lost = {};
  };
  // Creates the key, with this process's identity. Null: the key exists already.
  static Result<std::unique_ptr<HeldKey>> make(std::shared_ptr<Client> client, Options options,
                                               const Wait& wait);
  ~HeldKey() override;  // removes the key, and waits for etcd a second at most
  void withdrawSoon() override { bell_.ring(); }
  HeldKey(const HeldKey&) = delete;
  HeldKey& operator=(const HeldKey&) = delete;

 private:
  HeldKey(std::shared_ptr<Client> client, Options options)
      : client_(std::move(client)), options_(std::move(options)) {}
  Result<bool> make(const Wait& wait);
  void keep();
  bool makeAgain();

  const std::shared_ptr<Client> client_;
  const Options options_;
  Bell bell_;  // ends the thread, which then removes the key
  std::unique_ptr<Lease> lease_;
  std::thread thread_;
};

// Removes keys of dead processes.
class OthersKeys {
 public:
  // Whether the process that created the key is provably dead, and takeAway() has not been tried.
  bool mayTakeAway(const KeyValue& kv) const;
  // Revokes the lease of a dead process's key, once for each creation of the key. The key may still
  // exist afterwards.
  void takeAway(Client& client, const KeyValue& kv, const Wait& wait);

 private:
  Revision tried_ = 0;
};

}  // namespace viaduct::meet::etcd
