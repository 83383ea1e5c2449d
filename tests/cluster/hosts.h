// Hosts for tests: namespaces joined by links that can be limited, cut and healed. All of it goes
// away with the test by itself. Threads: the test's.
#pragma once

#include <sys/types.h>

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "process/process.h"

namespace viaduct::testing {

// A host's own network, name, shared memory, mounts and processes, held by a process that does
// nothing else. What shares any of these with its peer is taken for a neighbour by some libraries.
class Host {
 public:
  explicit Host(const std::string& name = "host");
  // False where namespaces may not be made (no CAP_SYS_ADMIN and CAP_NET_ADMIN).
  bool made() const { return made_; }
  // For Process and PeerProcess: run there.
  pid_t pid() const { return holder_.pid(); }
  // Runs a command of iproute2 in it: ip("link set rail0 down"). False when it fails.
  bool ip(const std::string& arguments) const { return run("ip " + arguments); }
  // The same for its traffic control: tc("qdisc add dev rail0 root tbf ...").
  bool tc(const std::string& arguments) const { return run("tc " + arguments); }
  // Any command of the shell, in its network.
  bool run(const std::string& command) const;
  // Bytes sent, or received, so far by one of its interfaces.
  std::uint64_t sent(const std::string& interface) const { return count(interface, 8); }
  std::uint64_t received(const std::string& interface) const { return count(interface, 0); }

  // Waits until its link is there: the kernel says so up to a second after it is up, and libfabric
  // lists no others.
  bool carries(const std::string& interface) const;
  // What goes out by this interface goes at this rate.
  bool limit(const std::string& interface, unsigned megabits) const;

 private:
  std::uint64_t count(const std::string& interface, std::size_t column) const;
  Process holder_;
  bool made_;
};

// Joins two hosts by a link of that name at both ends, with address/length at each.
bool join(const Host& a, const Host& b, const std::string& link, const std::string& address_a,
          const std::string& address_b);

// Hosts on a desk: every host has a link to each of some switches. Link 0 of host 0 is its
// interface "rail0" with the address 10.77.0.1; link 3 of host 1 is "rail3" with 10.77.3.2.
class Desk {
 public:
  explicit Desk(std::size_t hosts, std::size_t links = 1);
  bool made() const { return made_; }  // else the test is skipped: no CAP_NET_ADMIN
  std::size_t size() const { return hosts_.size(); }
  std::size_t links() const { return links_; }
  const Host& operator[](std::size_t host) const { return *hosts_[host]; }

  static std::string rail(std::size_t link) { return "rail" + std::to_string(link); }
  static std::string address(std::size_t host, std::size_t link = 0);
  // Of all its links, joined by commas: for `rails=`; and with ":0" behind each, for `listen=`.
  std::string rails(std::size_t host) const;
  std::string listen(std::size_t host) const;

  // All links, in both directions.
  bool limit(unsigned megabits) const;
  // One host's link is cut: the host sees no carrier, and the others, whose links stay up, see
  // nothing at all. Or its switch drops what comes and goes there, and nobody sees anything.
  bool cut(std::size_t host, std::size_t link) const;
  bool drop(std::size_t host, std::size_t link) const;
  // The same for all links of a host, within a millisecond or so.
  bool dropAll(std::size_t host) const;
  bool healAll(std::size_t host) const;
  // The host goes on hearing there, and nobody hears it.
  bool mute(std::size_t host, std::size_t link) const;
  bool unmute(std::size_t host, std::size_t link) const;
  bool heal(std::size_t host, std::size_t link) const;

 private:
  static std::string port(std::size_t host, std::size_t link);
  bool setAll(const std::vector<std::string>& ports) const;
  bool connect(std::size_t host, std::size_t link) const;
  std::size_t links_;
  std::unique_ptr<Host> switch_;  // all of them
  std::vector<std::unique_ptr<Host>> hosts_;
  bool made_ = false;
};

}  // namespace viaduct::testing
