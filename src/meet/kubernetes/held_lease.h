// The Lease of a name that this process has published and renews. Threads: any.
#pragma once

#include <viaduct/result.h>

#include <memory>
#include <optional>
#include <string>

#include "meet/kubernetes/renewals.h"
#include "meet/kubernetes/site.h"
#include "meet/meeting.h"

namespace viaduct::meet::kubernetes {

class HeldLease final : public PublishedName, private Renewable {
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
  // Another holder of the name, as this process has seen it so far.
  struct Rival {
    Rival(Changes& changes, const std::string& label, std::optional<WallTime> last)
        : waiter(changes, label), renewed(last) {}
    Changes::Waiter waiter;
    std::optional<WallTime> renewed;
    Clock::time_point since = Clock::now();
  };

  HeldLease(std::shared_ptr<Site> site, std::shared_ptr<Pace> pace, Lease lease)
      : site_(std::move(site)), pace_(std::move(pace)), lease_(std::move(lease)) {}
  // True: the rival is dead. False: look again. An error: it lives, or `wait` is over.
  Result<bool> isDead(const Lease& there, const Wait& wait);
  Status acquire(const Wait& wait);
  // False: there is a Lease of this name already (create), or in another state (update).
  Result<bool> create(const Wait& wait);
  Result<bool> update(const Wait& wait);
  Result<bool> write(const char* verb, const Wait& wait);
  void adopt(const Lease& there);
  Clock::time_point nextRenewal(Clock::time_point last) const;
  Clock::time_point renew() override;
  Status renew(const Wait& wait);
  void withdraw();

  const std::shared_ptr<Site> site_;
  const std::shared_ptr<Pace> pace_;
  Lease lease_;
  std::optional<Rival> rival_;
  bool failing_ = false;  // the last renewal failed, and was logged
  bool kept_ = false;     // renewals() has it
  base::StopFlag stop_ = false;
};

}  // namespace viaduct::meet::kubernetes
