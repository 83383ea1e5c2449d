// The limits that the system sets to this process's rate, and the time that it has lost by them.
// Threads: pure functions.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "host/tree.h"

namespace viaduct::host {

// Unknown fields are empty or 0.
struct ProcessLimits {
  std::uint32_t processors = 0;             // of the machine, online
  std::vector<std::uint32_t> allowed = {};  // the processors on which the process may run
  double quota = 0;  // processors that the control group may keep busy; 0 also without a quota
  // The most bytes that the kernel lets the buffers of a TCP socket grow to.
  std::uint64_t send_buffer = 0, receive_buffer = 0;
  // The kernel's setting of huge pages: "always", "madvise", "never". "off": this process gets
  // none. `huge_shared_pages` is the setting for shared memory.
  std::string huge_pages = {}, huge_shared_pages = {};
  std::uint32_t tracer = 0;  // the process that traces this one
  bool pinned() const { return !allowed.empty() && allowed.size() < processors; }
  friend bool operator==(const ProcessLimits&, const ProcessLimits&) = default;
};
ProcessLimits processLimits(const Tree& tree = {});

// The numbers of TCP segments that this network namespace has sent, and sent again.
struct TcpSegments {
  std::uint64_t sent = 0, repeated = 0;
};
TcpSegments tcpSegments(const Tree& tree = {});

// Seconds that only grow, from different starts: take the difference of two readings.
struct ProcessTimes {
  double ran = 0;        // by all threads of the process
  double waited = 0;     // its threads were ready to run, and waited for a processor
  double throttled = 0;  // the quota held its control group back
  double busy = 0;       // by any process, on the processors on which this one may run
  friend bool operator==(const ProcessTimes&, const ProcessTimes&) = default;
};
ProcessTimes processTimes(const Tree& tree = {});

}  // namespace viaduct::host
