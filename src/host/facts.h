// The facts about this machine that go into a measurement's result. Threads: pure functions and
// values.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "host/interfaces.h"

namespace viaduct::host {

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
std::string bootId(const Tree& tree = {});

std::string hostName();

// Cores, interfaces (not their rates), host name and kernel come from system calls, the rest from
// `tree`.
Facts facts(const Tree& tree = {});

}  // namespace viaduct::host
