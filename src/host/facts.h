// The facts about this machine that go into a measurement's result. Threads: pure functions and
// values.
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

// A machine. Unknown fields are empty or 0.
struct Facts {
  std::string boot_id = {};  // changes with every boot: equal means the same running kernel
  std::string hostname = {};
  std::string kernel = {};     // its release
  std::string cpu_model = {};  // of the first core
  std::uint32_t cores = 0;     // on which this process may run
  std::uint64_t memory = 0;    // bytes of this machine
  std::vector<Interface> interfaces = {};
  friend bool operator==(const Facts&, const Facts&) = default;
};

// The boot id alone, which is cheap to read.
std::string bootId(const std::string& root = "/");

std::string hostName();

// Files are read below `root`, which a test replaces by a folder. Cores, interfaces (not their
// rates), host name and kernel come from system calls.
Facts facts(const std::string& root = "/");

}  // namespace viaduct::host
