// Hosts for tests: network namespaces, joined by veth links, that go away with the test by
// themselves. Threads: the test's.
#pragma once

#include <sys/types.h>

#include <cstdint>
#include <memory>
#include <string>

#include "process/process.h"

namespace viaduct::testing {

// A network namespace, held by a process that does nothing else.
class Host {
 public:
  Host();
  // False where namespaces may not be made (no CAP_SYS_ADMIN and CAP_NET_ADMIN).
  bool made() const { return made_; }
  pid_t pid() const { return holder_.pid(); }
  // Runs a command of iproute2 in it: ip("link set rail0 down"). False when it fails.
  bool ip(const std::string& arguments) const { return run("ip " + arguments); }
  // The same for its traffic control: tc("qdisc add dev rail0 root tbf ...").
  bool tc(const std::string& arguments) const { return run("tc " + arguments); }
  // Bytes sent so far by one of its interfaces.
  std::uint64_t sent(const std::string& interface) const;

 private:
  bool run(const std::string& command) const;
  Process holder_;
  bool made_;
};

// Joins two hosts by a link of that name at both ends, with address/length at each.
bool join(const Host& a, const Host& b, const std::string& link, const std::string& address_a,
          const std::string& address_b);

}  // namespace viaduct::testing
