// One cluster of several etcd-servers on loopback. Threads: one at a time.
#pragma once

#include <cstddef>
#include <memory>
#include <string>
#include <vector>

#include "support/etcd_server.h"

namespace viaduct::testing {

class EtcdCluster {
 public:
  explicit EtcdCluster(std::size_t nodes);

  EtcdServer& node(std::size_t at) { return *nodes_.at(at); }
  // All endpoints, joined by commas, starting with node `first`; the others follow in turn.
  std::string urls(std::size_t first = 0) const;
  // The index of the leading node, once there is one. Fails the test if there is none.
  std::size_t leader() const;

 private:
  std::vector<std::unique_ptr<EtcdServer>> nodes_;
};

}  // namespace viaduct::testing
