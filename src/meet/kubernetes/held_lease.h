// The Lease of a name that this process has published, which a thread renews. Threads: any.
#pragma once

#include <viaduct/result.h>

#include <condition_variable>
#include <memory>
#include <mutex>
#include <string>
#include <thread>

#include "meet/kubernetes/site.h"
#include "meet/meeting.h"

namespace viaduct::meet::kubernetes {

class HeldLease final : public PublishedName {
 public:
  // Creates the Lease, or takes over that of a dead agent.
  static Result<std::unique_ptr<PublishedName>> make(std::shared_ptr<Site> site,
                                                     std::shared_ptr<Pace> pace,
                                                     const std::string& name,
                                                     const std::string& value, const Wait& wait);
  ~HeldLease() override;  // deletes the Lease, and waits two seconds at most for the server
  HeldLease(const HeldLease&) = delete;
  HeldLease& operator=(const HeldLease&) = delete;

 private:
  class Rival;

  HeldLease(std::shared_ptr<Site> site, std::shared_ptr<Pace> pace, Lease lease)
      : site_(std::move(site)), pace_(std::move(pace)), lease_(std::move(lease)) {}
  Status acquire(const Wait& wait);
  // False: there is a Lease of this name already (create), or in another state (update).
  Result<bool> create(const Wait& wait);
  Result<bool> update(const Wait& wait);
  Result<bool> write(const char* verb, const Wait& wait);
  void adopt(const Lease& there);
  Status start();
  void keep();
  Status renew(const Wait& wait);
  void withdraw();

  const std::shared_ptr<Site> site_;
  const std::shared_ptr<Pace> pace_;
  Lease lease_;
  base::StopFlag stop_ = false;
  std::mutex mutex_;
  std::condition_variable stopped_;
  std::thread thread_;
};

}  // namespace viaduct::meet::kubernetes
