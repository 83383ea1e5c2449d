#include "support/etcd_cluster.h"

#include <fmt/format.h>
#include <gtest/gtest.h>
#include <viaduct/deadline.h>

#include <chrono>
#include <cstdint>

#include "support/free_port.h"

namespace viaduct::testing {
namespace {

// The number after `"name" : ` in etcdctl's output of fields.
std::string field(const std::string& text, const std::string& name) {
  const std::string front = fmt::format("\"{}\" : ", name);
  const std::size_t at = text.find(front);
  if (at == std::string::npos) return {};
  const std::size_t begin = at + front.size();
  return text.substr(begin, text.find('\n', begin) - begin);
}

}  // namespace

EtcdCluster::EtcdCluster(std::size_t nodes) {
  std::vector<std::uint16_t> ports;
  std::string cluster;
  for (std::size_t i = 0; i < nodes; ++i) {
    ports.push_back(freePort());
    cluster += fmt::format("{}n{}=http://127.0.0.1:{}", i == 0 ? "" : ",", i, ports[i]);
  }
  for (std::size_t i = 0; i < nodes; ++i) {
    EtcdServer::Settings one;
    one.name = fmt::format("n{}", i);
    one.cluster = cluster;
    one.peer_port = ports[i];
    nodes_.push_back(std::make_unique<EtcdServer>(one));
  }
  for (const auto& one : nodes_) one->ready();
}

std::string EtcdCluster::urls(std::size_t first) const {
  std::string out;
  for (std::size_t i = 0; i < nodes_.size(); ++i)
    out += (i == 0 ? "" : ",") + nodes_[(first + i) % nodes_.size()]->url();
  return out;
}

std::size_t EtcdCluster::leader() const {
  // Tries again, because on a busy machine a leader's heartbeats may be late, and another be
  // elected.
  for (const Deadline until = std::chrono::seconds(60); !until.passed();)
    for (std::size_t i = 0; i < nodes_.size(); ++i) {
      const std::string status = nodes_[i]->ctl("endpoint status -w fields");
      if (const auto id = field(status, "MemberID"); !id.empty() && id == field(status, "Leader"))
        return i;
    }
  ADD_FAILURE() << "no node leads";
  return 0;
}

}  // namespace viaduct::testing
