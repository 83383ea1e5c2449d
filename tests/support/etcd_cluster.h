// Several real etcd-servers on loopback that are one cluster. Threads: one at a time.
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
  // All endpoints, joined by commas; the first is that of node `first`, the others follow in turn.
  std::string urls(std::size_t first = 0) const;
  // Which node leads, once one does; a failure of the test where none ever does.
  std::size_t leader() const;

 private:
  std::vector<std::unique_ptr<EtcdServer>> nodes_;
};

}  // namespace viaduct::testing
