// Groups at an etcd. The members elect one member, whose process runs an embedded server, and meet
// there. Threads: see meet/groups/group.h.
#pragma once

#include <viaduct/result.h>

#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "base/guarded.h"
#include "meet/etcd/etcd.h"
#include "meet/etcd/held_key.h"
#include "meet/groups/group.h"
#include "meet/groups/server.h"

namespace viaduct::meet::groups {

// A server in this process, and the key by which other members find it.
struct ElectedServer {
  std::unique_ptr<EmbeddedServer> server = {};
  std::unique_ptr<etcd::HeldKey> key = {};  // destroyed before its server

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

// The data that all groups of one meeting place share.
class Electorate {
 public:
  explicit Electorate(etcd::EtcdSite site) : site_(std::move(site)) {}
  // Members that have not said goodbye still need a server in this process. Waits for them, 5 s at
  // most.
  ~Electorate();
  Electorate(const Electorate&) = delete;
  Electorate& operator=(const Electorate&) = delete;

  const etcd::EtcdSite& site() const { return site_; }
  // Keeps the server after its member has left the group, while other members need it.
  void outlive(ElectedServer server, std::string member);

 private:
  const etcd::EtcdSite site_;
  struct Leftover {
    std::string member = {};
    ElectedServer its = {};
  };
  base::Guarded<std::vector<Leftover>> leftovers_;
};

Result<std::unique_ptr<Group>> joinElected(const std::shared_ptr<Electorate>& electorate,
                                           const JoinRequest& request, Clock::time_point until,
                                           const StopFlag& stop);

}  // namespace viaduct::meet::groups
