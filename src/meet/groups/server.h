// The small server at which members meet. It runs inside a member or alone. One thread serves all
// members, and sleeps while nothing happens. Threads: call from any; not across fork().
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
  // "host:port", "[v6]:port" or "*:port". Port 0 takes a free port. Ignored if `listening` is set.
  std::vector<std::string> listen = {"127.0.0.1:0"};
  base::Fd listening = {};  // a listening socket, bound before a fork(), or inherited
  std::string token = {};
  bool insecure = false;  // lets it listen beyond loopback without a token
  std::chrono::milliseconds detect = std::chrono::seconds(2);  // a member silent so long is dead
  // Gets a line for people when a group forms or ends, and when a connection is refused. Called on
  // the server's thread; must not call the server.
  std::function<void(const std::string&)> say = {};
  // If set, the server is for one group. Called once on the server's thread, when that group has
  // ended; must not call the server. Later joiners are refused with kPeerLost.
  std::function<void()> over = {};
};

struct ServerCounts {
  std::uint64_t members = 0;  // connections that have proved that they know the token
  std::uint64_t groups = 0;   // complete and not ended
  std::uint64_t names = 0;
  std::uint64_t received = 0, sent = 0;  // messages since the start
};

class EmbeddedServer {
 public:
  static Result<std::unique_ptr<EmbeddedServer>> start(ServerOptions options);
  // Ends the server. All members lose the meeting place at once.
  ~EmbeddedServer();
  EmbeddedServer(const EmbeddedServer&) = delete;
  EmbeddedServer& operator=(const EmbeddedServer&) = delete;

  // Opens a listening socket, for ServerOptions::listening.
  static Result<base::Fd> listen(const std::string& where);

  std::vector<std::string> addresses() const;  // with real ports, for the members
  // Ends all groups. Their members get `why`.
  void close(const Error& why);
  // Waits until no complete group runs any more. False: `until` has passed.
  bool drained(Deadline until);
  ServerCounts counts();

  class Impl;

 private:
  explicit EmbeddedServer(std::unique_ptr<Impl> impl);
  std::unique_ptr<Impl> impl_;
};

}  // namespace viaduct::meet
