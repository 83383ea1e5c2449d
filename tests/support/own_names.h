// Gives a thread, and the threads that it starts, their own /etc/hosts and /etc/resolv.conf, with
// one name server, by default at an address where none runs. Threads: the one that enters.
#pragma once

#include <string>

#include "support/temporary_folder.h"

namespace viaduct::testing {

class OwnNames {
 public:
  // False if there are no mount namespaces. `timeout`: the seconds that the resolver waits for the
  // server.
  bool enter(const std::string& server = "127.0.0.1", int timeout = 1);
  void writeHosts(const std::string& text);

 private:
  bool bind(const std::string& name);
  std::string file(const std::string& name) const { return folder_.path() + "/" + name; }

  TemporaryFolder folder_;
};

}  // namespace viaduct::testing
