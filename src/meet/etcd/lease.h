// A lease of etcd. Its keys vanish with it. Threads: one at a time.
#pragma once

#include <viaduct/deadline.h>
#include <viaduct/result.h>

#include <chrono>
#include <condition_variable>
#include <memory>
#include <mutex>
#include <optional>

#include "meet/etcd/client.h"

namespace viaduct::meet::etcd {

// Ends the current and all later waits of a thread. Threads: any.
class Bell {
 public:
  void ring();
  bool waitUntil(Clock::time_point when);  // true: it has rung
  const base::StopFlag& rung() const { return rung_; }

 private:
  std::mutex mutex_;
  std::condition_variable changed_;
  base::StopFlag rung_ = false;
};

class Lease {
 public:
  // The minimum that etcd enforces with its default election timeout.
  static constexpr std::chrono::seconds kLeast{2};
  // An etcd counts as lost after this much silence beyond the lease's time. That suffices for a
  // restart and an election of etcd, and leases outlive both.
  static constexpr std::chrono::seconds kPatience{5};
  static std::chrono::seconds timeOf(std::chrono::milliseconds detect);

  static Result<std::unique_ptr<Lease>> grant(std::shared_ptr<Client> client,
                                              std::chrono::milliseconds detect, const Wait& wait);
  // Revokes the lease, which removes its keys, and gives up after a second. A request for a key
  // that reaches etcd later fails.
  ~Lease();
  Lease(const Lease&) = delete;
  Lease& operator=(const Lease&) = delete;

  // Renews the lease until the bell rings. Returns an error when the lease's keys may be gone.
  std::optional<Error> keep(Bell& bell);
  LeaseId id() const { return id_; }

 private:
  Lease(std::shared_ptr<Client> client, LeaseId id, std::chrono::seconds ttl)
      : client_(std::move(client)), id_(id), ttl_(ttl) {}
  Status renew(const Bell& bell);

  const std::shared_ptr<Client> client_;
  const LeaseId id_;
  const std::chrono::seconds ttl_;
  Clock::time_point kept_at_ = Clock::now();
  bool lost_ = false;
};

// Revokes another process's lease.
Status revoke(Client& client, LeaseId lease, const Wait& wait);

}  // namespace viaduct::meet::etcd
