// Groups at an etcd: the members elect one of them, in whose process an embedded server runs, and
// meet there. Threads: as meet/meeting.h says.
#pragma once

#include <viaduct/result.h>

#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "base/guarded.h"
#include "meet/embedded/server.h"
#include "meet/etcd/held_key.h"
#include "meet/meeting.h"

namespace viaduct::meet::etcd {

// A server in this process, and the key by which other members find it.
struct ElectedServer {
  std::unique_ptr<EmbeddedServer> server = {};
  std::unique_ptr<HeldKey> key = {};  // goes before its server

  ElectedServer() = default;
  ElectedServer(ElectedServer&&) = default;
  ElectedServer& operator=(ElectedServer&& other) noexcept {
    key = std::move(other.key);
    server = std::move(other.server);
    return *this;
  }
  ElectedServer(const ElectedServer&) = delete;
  ElectedServer& operator=(const ElectedServer&) = delete;
  ~ElectedServer() = default;
};

// Shared by all groups of one meeting place.
class Electorate {
 public:
  struct Options {
    std::shared_ptr<Client> client = {};
    std::string root = {};  // in front of all keys
    std::string token = {};
    std::chrono::milliseconds detect = {};
    base::SayWaiting waiting = {};
  };
  explicit Electorate(Options options) : options_(std::move(options)) {}
  // Members of a group that have not said goodbye still need our server. Waits for them, 5 s at
  // most.
  ~Electorate();
  Electorate(const Electorate&) = delete;
  Electorate& operator=(const Electorate&) = delete;

  const Options& options() const { return options_; }
  // Keeps the server after our member has left the group, while other members need it.
  void outlive(ElectedServer server, std::string member);

 private:
  const Options options_;
  struct Leftover {
    std::string member = {};
    ElectedServer its = {};
  };
  base::Guarded<std::vector<Leftover>> leftovers_;
};

Result<std::unique_ptr<Group>> joinElected(const std::shared_ptr<Electorate>& electorate,
                                           const JoinRequest& request, Clock::time_point until,
                                           const StopFlag& stop);

}  // namespace viaduct::meet::etcd
