// A real etcd-server on loopback for tests: started on free ports with its data in a folder of its
// own, stopped, continued, killed, started again; ended with the test. Threads: one at a time.
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
    // https, and only for clients with a certificate that `ca_file` signed.
    std::string ca_file = {}, certificate_file = {}, key_file = {};
    std::vector<std::string> arguments = {};  // more of etcd's own
    // As one of several: its name, and "name=http://127.0.0.1:port" of all, joined by commas. It
    // then serves only once most of them run: whoever makes them all calls ready().
    std::string name = "default", cluster = {};
    std::uint16_t peer_port = 0;  // 0: a free one
  };
  // Why tests over etcd cannot run here; empty: they can.
  static std::string whyAbsent();

  EtcdServer() : EtcdServer(Settings()) {}
  explicit EtcdServer(Settings settings);
  ~EtcdServer();  // SIGKILL
  EtcdServer(const EtcdServer&) = delete;
  EtcdServer& operator=(const EtcdServer&) = delete;

  std::string url() const { return url("127.0.0.1"); }
  std::string url(const std::string& host) const;
  std::uint16_t port() const { return port_; }

  // After kill(), with the data and ports of before; returns when it serves.
  void start();
  void ready();  // returns when it serves
  void stop();   // SIGSTOP
  void resume();
  void kill();  // SIGKILL, and waits until it is dead
  // etcdctl against this server; its output, a failure of the test when it fails.
  std::string ctl(const std::string& arguments) const;

 private:
  void launch();
  std::string log() const;

  Settings settings_;
  TemporaryFolder folder_;
  std::uint16_t port_ = 0, peer_port_ = 0;
  pid_t pid_ = -1;
};

// Skips the test that asks where there is no etcd.
#define VIADUCT_NEEDS_ETCD()                                                      \
  if (const auto why = ::viaduct::testing::EtcdServer::whyAbsent(); !why.empty()) \
  GTEST_SKIP() << "skipped: " << why

// Runs a shell command; its output. A failure of the test when it does not exit with 0.
std::string shell(const std::string& command);

}  // namespace viaduct::testing
