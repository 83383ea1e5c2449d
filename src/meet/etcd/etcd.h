// Opens a meeting place at an etcd cluster, version 3, through its JSON gateway. Threads: any.
#pragma once

#include <viaduct/result.h>

#include <chrono>
#include <memory>
#include <string>

#include "base/waiting.h"
#include "meet/etcd/client.h"
#include "meet/meeting.h"
#include "meet/place_options.h"

namespace viaduct::meet::etcd {

// A meeting place at an etcd cluster, with what its users share.
struct EtcdSite {
  std::shared_ptr<Client> client = {};
  std::string root = {};  // prefix of all keys
  std::string token = {};
  std::chrono::milliseconds detect = {};
  base::SayWaiting waiting = {};
};
// Reads the options. Connects to no endpoint yet.
Result<EtcdSite> siteOf(const PlaceOptions& options);
// Opens the place. Connects only in publish() and find().
Result<std::unique_ptr<MeetingPlace>> open(const PlaceOptions& options);

// Deadline::never() becomes a year, so that later additions do not overflow.
Clock::time_point clamped(Deadline until);

}  // namespace viaduct::meet::etcd
