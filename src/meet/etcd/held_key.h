// A key of this process, on a lease of its own that a thread renews. Threads: any.
#pragma once

#include <viaduct/result.h>

#include <functional>
#include <memory>
#include <string>
#include <thread>

#include "meet/etcd/lease.h"

namespace viaduct::meet::etcd {

class HeldKey {
 public:
  struct Options {
    std::string key = {}, value = {};
    std::chrono::milliseconds detect = {};
    std::shared_ptr<Bell> bell = std::make_shared<Bell>();  // when it rings, the key goes
    // Called by the key's thread when the lease is lost. Without it, the key is made again.
    std::function<void(const Error&)> lost = {};
  };
  // Makes the key, with our identity. Null: it is there already.
  static Result<std::unique_ptr<HeldKey>> make(std::shared_ptr<Client> client, Options options,
                                               const Wait& wait);
  ~HeldKey();  // the key goes: this waits for etcd, a second at most
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
  std::unique_ptr<Lease> lease_;
  std::thread thread_;
};

// Keys that other processes hold.
class OthersKeys {
 public:
  // Whether the process that made the key is provably dead.
  static bool isDead(const KeyValue& kv);
  // Revokes the lease of a dead process's key, once for each making of the key. False: the key may
  // still be there.
  bool takeAway(Client& client, const KeyValue& kv, const Wait& wait);

 private:
  Revision tried_ = 0;
};

}  // namespace viaduct::meet::etcd
