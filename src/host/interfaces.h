// The network interfaces of this process's network namespace. Threads: pure functions.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "host/tree.h"

namespace viaduct::host {

// An interface with one of its addresses. An interface with several is in the list several times.
struct InterfaceAddress {
  std::string interface = {};
  std::string address = {};  // "10.0.106.7"; empty: this entry has no IP address
  unsigned prefix = 0;       // its length in bits
  bool up = false, running = false;
};
std::vector<InterfaceAddress> interfaceAddresses();

struct Interface {
  std::string name = {};
  std::vector<std::string> addresses = {};  // IPv4 and IPv6, as text
  bool up = false;
  std::uint64_t mbit_per_s = 0;  // 10^6 bits a second of the link; 0: unknown, or no device
  friend bool operator==(const Interface&, const Interface&) = default;
};
// The list is of this machine; `tree` has the rates.
std::vector<Interface> interfaces(const Tree& tree);

// The rate of a link with a device behind it, in 10^6 bits a second. 0: unknown, or there is no
// device: bridges and virtual pairs report made-up rates.
std::uint64_t linkRate(const Tree& tree, const std::string& interface);

// One line of /proc/net/dev: the traffic of an interface of this process's network namespace. /sys
// is no substitute: it shows the namespace in which it was mounted.
struct InterfaceBytes {
  std::string name = {};
  std::uint64_t received = 0, sent = 0;
};
std::vector<InterfaceBytes> interfaceBytes(const Tree& tree);

}  // namespace viaduct::host
