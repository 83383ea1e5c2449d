// A thread with /etc/hosts and /etc/resolv.conf of its own; the threads that it starts have them
// too. The only name server is one that nobody runs. Threads: the one that enters.
#pragma once

#include <string>

#include "support/temporary_folder.h"

namespace viaduct::testing {

class OwnNames {
 public:
  bool enter();  // false where there are no mount namespaces
  void writeHosts(const std::string& text);

 private:
  bool bind(const std::string& name);
  std::string file(const std::string& name) const { return folder_.path() + "/" + name; }

  TemporaryFolder folder_;
};

}  // namespace viaduct::testing
