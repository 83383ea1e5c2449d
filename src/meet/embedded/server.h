// The small server at which members meet, inside one of them or standing alone. It has one thread,
// asleep while nothing happens, and none per member. Threads: call from any; not across fork().
#pragma once

#include <viaduct/deadline.h>
#include <viaduct/result.h>

#include <chrono>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "base/fd.h"

namespace viaduct::meet {

struct ServerOptions {
  // "host:port", "[v6]:port", "*:port"; port 0 takes a free one. Not looked at with `listening`.
  std::vector<std::string> listen = {"127.0.0.1:0"};
  base::Fd listening = {};  // a socket that listens already: bound before a fork(), or inherited
  std::string token = {};
  bool insecure = false;  // lets it listen beyond loopback without a token
  std::chrono::milliseconds detect = std::chrono::seconds(2);  // a silent member is dead
  // Gets a line for people when a group forms or ends and when somebody is turned away; on the
  // server's thread. Must not call the server.
  std::function<void(const std::string&)> say = {};
  // Where set, the server is for one group. Called once, when that group has ended, on the server's
  // thread; must not call the server. Later joiners are sent away with kPeerLost.
  std::function<void()> over = {};
};

struct ServerCounts {
  std::uint64_t members = 0;  // connections that have proved themselves
  std::uint64_t groups = 0;   // whole, and not ended
  std::uint64_t names = 0;
  std::uint64_t received = 0, sent = 0;  // messages since the start
};

class EmbeddedServer {
 public:
  static Result<std::unique_ptr<EmbeddedServer>> start(ServerOptions options);
  // All members lose the meeting place at once.
  ~EmbeddedServer();
  EmbeddedServer(const EmbeddedServer&) = delete;
  EmbeddedServer& operator=(const EmbeddedServer&) = delete;

  // A socket that listens there already, for ServerOptions::listening.
  static Result<base::Fd> listen(const std::string& where);

  std::vector<std::string> addresses() const;  // with real ports; what members are told to use
  // Ends all groups, with that reason for their members.
  void close(const Error& why);
  // Waits until no group is whole and running; false at `until`.
  bool drained(Deadline until);
  ServerCounts counts();

  class Impl;

 private:
  explicit EmbeddedServer(std::unique_ptr<Impl> impl);
  std::unique_ptr<Impl> impl_;
};

}  // namespace viaduct::meet
