// A thread with /etc/hosts and /etc/resolv.conf of its own; the threads that it starts have them
// too. Nobody runs its only name server. Threads: the one that enters.
#pragma once

#include <string>

#include "support/temporary_folder.h"

namespace viaduct::testing {

class OwnNames {
 public:
  // False where there are no mount namespaces. The resolver gives the server so many seconds.
  bool enter(const std::string& server = "127.0.0.1", int timeout = 1);
  void writeHosts(const std::string& text);

 private:
  bool bind(const std::string& name);
  std::string file(const std::string& name) const { return folder_.path() + "/" + name; }

  TemporaryFolder folder_;
};

}  // namespace viaduct::testing
