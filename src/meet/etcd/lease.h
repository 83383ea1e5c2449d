// The one lease that all keys of this process hang on, kept alive until stop(). Threads: the
// loop's own.
#pragma once

#include <chrono>
#include <functional>
#include <utility>
#include <vector>

#include "meet/etcd/client.h"

namespace viaduct::meet::etcd {

class Lease {
 public:
  // etcd's own least time to live with its default election timeout; it rounds up to that itself.
  static constexpr std::chrono::seconds kLeast{2};
  // An etcd that is silent for so long beyond the lease's time is given up: a restart and an
  // election fit in, and leases outlive both.
  static constexpr std::chrono::seconds kPatience{5};

  Lease(CurlLoop& loop, Client& client, std::chrono::milliseconds detect);
  ~Lease();
  Lease(const Lease&) = delete;
  Lease& operator=(const Lease&) = delete;

  // The lease, granted if there is none yet.
  void want(Clock::time_point until, std::function<void(Result<LeaseId>)> done);
  // Its keys are gone, or must be thought so. The next want() gets another one.
  CurlLoop::Id onLoss(std::function<void(const Error&)> lost);
  void forgetLoss(CurlLoop::Id id);
  void stop();  // keeps nothing alive from here on

  LeaseId id() const { return id_; }  // 0: none
  std::chrono::seconds timeToLive() const { return ttl_; }
  std::string whyGone() const;  // where etcd does not know it any more

 private:
  void granted(LeaseId id, Result<std::string> body);
  void keepAliveLater();
  void keepAlive();
  void kept(Result<std::string> body);
  void lose(Error why);

  CurlLoop& loop_;
  Client& client_;
  std::chrono::seconds ttl_;
  LeaseId id_ = 0;
  std::vector<std::function<void(Result<LeaseId>)>> waiting_;
  std::vector<std::pair<CurlLoop::Id, std::function<void(const Error&)>>> on_loss_;
  CurlLoop::Id last_ = 0, timer_ = 0;
  Clock::time_point kept_at_;
};

}  // namespace viaduct::meet::etcd
