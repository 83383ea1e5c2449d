// A group at an API server. All places of this process that meet in this group share a Site.
// Threads: any.
#pragma once

#include <viaduct/result.h>

#include <chrono>
#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <string>

#include "base/guarded.h"
#include "meet/kubernetes/changes.h"
#include "meet/kubernetes/client.h"
#include "meet/kubernetes/names.h"
#include "meet/kubernetes/objects.h"
#include "meet/kubernetes/renewals.h"
#include "meet/place_options.h"

namespace viaduct::meet::kubernetes {

// A name that is not renewed for this time is dead. A living owner renews its name each third of
// this time.
inline constexpr std::chrono::seconds kLeaseTime{15};

class Site {
 public:
  // The process's site for these options. Connects to no server yet.
  static Result<std::shared_ptr<Site>> of(const PlaceOptions& options,
                                          std::chrono::seconds least_lease);

  Site(std::shared_ptr<Client> client, std::string group, std::string group_label,
       std::chrono::seconds lease);

  Client& client() { return *client_; }
  Changes& changes() { return changes_; }
  Renewals& renewals() { return renewals_; }
  std::chrono::seconds leaseTime() const { return lease_; }
  // A Lease without holder and times. This process's pod owns it, if it is known.
  Lease leaseOf(const LeaseTitle& title) const;
  // A Lease, and whether its holder lives.
  enum class Life : std::uint8_t { kLives, kUnknown, kDead };
  struct Reading {
    std::optional<Lease> lease = {};  // nothing: there is none
    Life life = Life::kDead;
    Clock::time_point dead_at = {};  // the holder is dead then, unless it renews before
  };
  Result<Reading> read(const LeaseTitle& title, const Wait& wait, Pace& pace);
  // "kubernetes https://10.0.0.1:443, namespace serving, group decode"
  const std::string& text() const { return text_; }

 private:
  // A Lease, as this process has seen it so far.
  struct Watched {
    std::optional<WallTime> renewed = {};
    Clock::time_point since = {}, read = {};  // unchanged since; last read at
    bool lives = false;                       // it was renewed between two looks
  };
  void judge(Reading& reading, std::optional<WallTime> date);

  const std::shared_ptr<Client> client_;
  const std::string group_label_, text_;
  const std::chrono::seconds lease_;
  std::string pod_name_, pod_uid_;
  base::Guarded<std::map<std::string, Watched>> watched_;  // by the name of the Lease
  Changes changes_;
  Renewals renewals_;
};

// The time without a renewal after which the agent of this Lease is dead.
std::chrono::seconds timeOf(const Lease& lease);

}  // namespace viaduct::meet::kubernetes
