// The Lease of a key that this process has claimed and renews. Threads: any.
#pragma once

#include <viaduct/result.h>

#include <atomic>
#include <functional>
#include <memory>
#include <string>

#include "meet/kubernetes/holder.h"
#include "meet/kubernetes/names.h"
#include "meet/kubernetes/renewals.h"
#include "meet/kubernetes/site.h"
#include "meet/meeting.h"

namespace viaduct::meet::kubernetes {

class HeldLease final : public PublishedName, private Renewable {
 public:
  // Creates the Lease, or takes over that of a dead process. Null: another process has the Lease.
  static Result<std::unique_ptr<PublishedName>> make(std::shared_ptr<Site> site,
                                                     std::shared_ptr<Pace> pace,
                                                     const LeaseTitle& title, const Claim& claim,
                                                     const Wait& wait);
  ~HeldLease() override;  // deletes the Lease, and waits two seconds at most for the server
  void withdrawSoon() override;
  HeldLease(const HeldLease&) = delete;
  HeldLease& operator=(const HeldLease&) = delete;

 private:
  HeldLease(std::shared_ptr<Site> site, std::shared_ptr<Pace> pace, const LeaseTitle& title,
            const Claim& claim);
  Result<bool> acquire(const Wait& wait);
  // Write the Lease. False: there is a Lease of this name already (create), or in another state
  // (update).
  Result<bool> create(const Wait& wait);
  Result<bool> update(const Wait& wait);
  Result<bool> write(const char* verb, const Wait& wait);
  void adopt(const Lease& there);
  Clock::time_point nextRenewal(Clock::time_point last) const;
  Clock::time_point renew() override;
  Status renew(const Wait& wait);
  void failed(const Error& why);
  void withdraw();

  const std::shared_ptr<Site> site_;
  const std::shared_ptr<Pace> pace_;
  const LeaseTitle title_;
  const Holder holder_;
  const std::function<void(const Error&)> lost_;
  Lease lease_;
  Clock::time_point renewed_at_ = {};
  bool failing_ = false;   // the last renewal failed, and was logged
  bool given_up_ = false;  // `lost_` was called
  bool kept_ = false;      // renewals() renews the Lease
  bool withdrawn_ = false;
  std::atomic<bool> leaving_ = false;
  base::StopFlag stop_ = false;
};

}  // namespace viaduct::meet::kubernetes
