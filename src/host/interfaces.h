// The network interfaces of this process's network namespace. Threads: pure functions.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "host/tree.h"

namespace viaduct::host {

// An interface with one of its addresses. An interface with several addresses is in the list
// several times.
struct InterfaceAddress {
  std::string interface = {};
  std::string address = {};  // "10.0.106.7"; empty: this entry has no IP address
  unsigned prefix = 0;       // the length of the network prefix, in bits
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
// The interfaces are always those of this machine. Only their rates come from `tree`.
std::vector<Interface> interfaces(const Tree& tree);

// The path of a file of an interface: "/sys/class/net/eth0/mtu".
std::string interfaceFile(const std::string& interface, std::string_view name);

// The rate of a link with a device behind it, in 10^6 bits a second. 0: unknown, or there is no
// device: bridges and virtual pairs report made-up rates.
std::uint64_t linkRate(const Tree& tree, const std::string& interface);

}  // namespace viaduct::host
