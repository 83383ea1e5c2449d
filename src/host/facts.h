// The facts about this machine that go into a measurement's result. Threads: pure functions and
// values.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "host/interfaces.h"

namespace viaduct::host {

// When the kernel started, in seconds of the real-time clock, from two sources. Time namespaces are
// accounted for. 0: unknown.
struct KernelStart {
  double by_clock = 0;  // real-time clock less uptime, exact to microseconds
  double by_stat = 0;   // btime of /proc/stat, in whole seconds
  friend bool operator==(const KernelStart&, const KernelStart&) = default;
};
// The clocks are this machine's, so the start of another machine's kernel is unknown.
KernelStart kernelStart(const Tree& tree = {});
// The time that a time namespace adds to the uptime, in seconds.
double uptimeOffset(const Tree& tree);
// True if both are known and agree to a millisecond. Two kernels rarely start that close together.
bool startedTogether(double one, double other);

// A machine. Unknown fields are empty or 0.
struct Facts {
  std::string boot_id = {};   // changes with every boot: equal means the same running kernel
  double kernel_started = 0;  // KernelStart::by_clock
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

// Cores, interfaces (not their rates), host name, kernel and its start come from system calls, the
// rest from `tree`.
Facts facts(const Tree& tree = {});

}  // namespace viaduct::host
