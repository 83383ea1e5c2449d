// Hosts for tests: namespaces, joined by links that the test can limit, cut and heal. All of it
// disappears with the test. Threads: the test's.
#pragma once

#include <sys/types.h>

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "process/process.h"

namespace viaduct::testing {

// One host with its own network, name, shared memory, mounts and processes. An idle process holds
// the namespaces. Some libraries take a peer for local if they share any of these.
class Host {
 public:
  explicit Host(const std::string& name = "host");
  // False if this user may not make namespaces (no CAP_SYS_ADMIN and CAP_NET_ADMIN).
  bool made() const { return made_; }
  // Process and PeerProcess run their program in this process's namespaces.
  pid_t pid() const { return holder_.pid(); }
  // Runs iproute2's command on this host: ip("link set rail0 down"). False if it fails.
  bool ip(const std::string& arguments) const { return run("ip " + arguments); }
  // Runs the traffic control command on this host: tc("qdisc add dev rail0 root tbf ...").
  bool tc(const std::string& arguments) const { return run("tc " + arguments); }
  // Runs a shell command there.
  bool run(const std::string& command) const;
  // The bytes that one of its interfaces has sent, or received, so far.
  std::uint64_t sent(const std::string& interface) const { return count(interface, 8); }
  std::uint64_t received(const std::string& interface) const { return count(interface, 0); }

  // Waits for the link: the kernel reports it up to a second after it is up, and libfabric lists
  // only links that are up.
  bool carries(const std::string& interface) const;
  // Waits until the kernel reports that a link that was cut is not up.
  bool losesCarrier(const std::string& interface) const;
  // Limits the rate of an interface's outgoing traffic.
  bool limit(const std::string& interface, unsigned megabits) const;

 private:
  bool waitUntil(const std::string& shell_condition) const;
  std::uint64_t count(const std::string& interface, std::size_t column) const;
  Process holder_;
  bool made_;
};

// Joins two hosts by a link with this name at both ends, and an address/length at each.
bool join(const Host& a, const Host& b, const std::string& link, const std::string& address_a,
          const std::string& address_b);

// Several hosts, each with a link to each of several switches. Link 0 of host 0 is its interface
// "rail0" with the address 10.77.0.1; link 3 of host 1 is "rail3" with 10.77.3.2.
class Desk {
 public:
  explicit Desk(std::size_t hosts, std::size_t links = 1);
  bool made() const { return made_; }  // else skip the test: no CAP_NET_ADMIN
  std::size_t size() const { return hosts_.size(); }
  std::size_t links() const { return links_; }
  const Host& operator[](std::size_t host) const { return *hosts_[host]; }

  static std::string rail(std::size_t link) { return "rail" + std::to_string(link); }
  static std::string address(std::size_t host, std::size_t link = 0);
  // All addresses of a host, joined by commas: for `rails=`, or with ":0" behind each for
  // `listen=`.
  std::string rails(std::size_t host) const;
  std::string listen(std::size_t host) const;

  // Limits all links, in both directions.
  bool limit(unsigned megabits) const;
  // Cuts one host's link: the host loses the carrier, and other hosts notice nothing. drop: the
  // switch drops the link's frames, and no end notices.
  bool cut(std::size_t host, std::size_t link) const;
  bool drop(std::size_t host, std::size_t link) const;
  // The switches drop all frames from the same instant on. False without nft, or without nf_tables
  // in the kernel.
  bool dropAll() const;
  bool healAll() const;
  // The host receives on this link, but nothing that it sends arrives.
  bool mute(std::size_t host, std::size_t link) const;
  bool unmute(std::size_t host, std::size_t link) const;
  bool heal(std::size_t host, std::size_t link) const;

 private:
  static std::string port(std::size_t host, std::size_t link);
  bool connect(std::size_t host, std::size_t link) const;
  std::size_t links_;
  std::unique_ptr<Host> switch_;  // one host for all switches
  std::vector<std::unique_ptr<Host>> hosts_;
  bool made_ = false;
};

}  // namespace viaduct::testing
