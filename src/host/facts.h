// Facts about this machine that a measurement has to carry. Threads: pure functions and values.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace viaduct::host {

struct Interface {
  std::string name = {};
  std::vector<std::string> addresses = {};  // IPv4 and IPv6, as text
  bool up = false;
  std::uint64_t mbit_per_s = 0;  // 10^6 bits a second of the link; 0: unknown, or no device
  friend bool operator==(const Interface&, const Interface&) = default;
};

// What cannot be found out is empty or 0.
struct Facts {
  std::string boot_id = {};  // changes with every boot: equal means the same running kernel
  std::string hostname = {};
  std::string kernel = {};     // its release
  std::string cpu_model = {};  // of the first core
  std::uint32_t cores = 0;     // that this process may run on
  std::uint64_t memory = 0;    // bytes, of the machine
  std::vector<Interface> interfaces = {};
  friend bool operator==(const Facts&, const Facts&) = default;
};

// The boot id alone: cheap.
std::string bootId(const std::string& root = "/");

std::string hostName();

// Files are read below `root`, which a test replaces by a folder; cores, interfaces, host name and
// kernel are asked of the system.
Facts facts(const std::string& root = "/");

}  // namespace viaduct::host
