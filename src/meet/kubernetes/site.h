// A group at an API server, with what all places of this process that meet there share. Threads:
// any.
#pragma once

#include <viaduct/result.h>

#include <chrono>
#include <memory>
#include <optional>
#include <string>

#include "meet/kubernetes/changes.h"
#include "meet/kubernetes/client.h"
#include "meet/kubernetes/objects.h"
#include "meet/kubernetes/renewals.h"
#include "meet/place_options.h"

namespace viaduct::meet::kubernetes {

// A name that is not renewed for so long is dead. It is renewed each third of this time.
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
  // The Lease of a name, without holder and times. This process's pod owns it, if it is known.
  Lease leaseOf(const std::string& name) const;
  // Reads the Lease of a name. Nothing: there is none.
  struct Reading {
    std::optional<Lease> lease = {};
    std::optional<WallTime> date = {};  // of the server's clock
  };
  Result<Reading> read(const std::string& name, const Wait& wait, Pace& pace);
  // "kubernetes https://10.0.0.1:443, namespace serving, group decode"
  const std::string& text() const { return text_; }

 private:
  const std::shared_ptr<Client> client_;
  const std::string group_label_, text_;
  const std::chrono::seconds lease_;
  std::string pod_name_, pod_uid_;
  Changes changes_;
  Renewals renewals_;
};

// Whether a Lease that is seen for the first time has been renewed in time. `now`: the server's
// clock. False also if the clocks of its writer and of the server are far apart: then only a change
// shows that the writer lives.
bool looksAlive(const Lease& lease, std::optional<WallTime> now);
// The time without a renewal after which the agent of this Lease is dead.
std::chrono::seconds timeOf(const Lease& lease);

// This process: its host, its id and a random number. The holder of a Lease begins with it.
std::string ownProcess();

}  // namespace viaduct::meet::kubernetes
