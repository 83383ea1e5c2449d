// A real etcd-server on loopback for tests, on free ports and with its own data folder. The test
// stops, continues, kills and restarts it; the destructor kills it. Threads: one at a time.
#pragma once

#include <sys/types.h>

#include <cstdint>
#include <string>
#include <vector>

#include "support/temporary_folder.h"

namespace viaduct::testing {

class EtcdServer {
 public:
  struct Settings {
    // If set: https, only for clients with a certificate that `ca_file` signed.
    std::string ca_file = {}, certificate_file = {}, key_file = {};
    std::vector<std::string> arguments = {};  // more arguments for etcd
    // For a node of a cluster: its name, and "name=http://127.0.0.1:port" of all nodes, joined by
    // commas. Such a node serves only once most nodes run; call ready() after starting them all.
    std::string name = "default", cluster = {};
    std::uint16_t peer_port = 0;  // 0: a free one
  };
  // Why tests with etcd cannot run here; empty: they can.
  static std::string whyAbsent();

  EtcdServer() : EtcdServer(Settings()) {}
  explicit EtcdServer(Settings settings);
  ~EtcdServer();  // kills it with SIGKILL
  EtcdServer(const EtcdServer&) = delete;
  EtcdServer& operator=(const EtcdServer&) = delete;

  std::string url() const { return url("127.0.0.1"); }
  std::string url(const std::string& host) const;
  std::uint16_t port() const { return port_; }

  // Restarts after kill(), with the same data and ports. Returns when the server answers.
  void start();
  void wipe();   // removes the data, after kill()
  void ready();  // returns when the server answers
  void stop();   // sends SIGSTOP
  void resume();
  void kill();  // sends SIGKILL, and waits until the process is dead
  // Runs etcdctl with this server and returns its output. Fails the test if etcdctl fails.
  std::string ctl(const std::string& arguments) const;

 private:
  void launch();
  std::string log() const;

  Settings settings_;
  TemporaryFolder folder_;
  std::uint16_t port_ = 0, peer_port_ = 0;
  pid_t pid_ = -1;
};

// Skips the calling test if there is no etcd.
#define VIADUCT_NEEDS_ETCD()                                                      \
  if (const auto why = ::viaduct::testing::EtcdServer::whyAbsent(); !why.empty()) \
  GTEST_SKIP() << "skipped: " << why

// Runs a shell command and returns its output. Fails the test if the exit code is not 0.
std::string shell(const std::string& command);

}  // namespace viaduct::testing
