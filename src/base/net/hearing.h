// The kernel's view of the path to a TCP socket's other host, independent of the process there.
// Threads: any.
#pragma once

#include <chrono>
#include <cstdint>

namespace viaduct::base {

struct Hearing {
  bool awaited = false;               // sent bytes are not acknowledged yet
  bool repeats = false;               // these bytes have been sent again
  std::uint64_t acknowledged = 0;     // bytes since the connection began
  std::chrono::milliseconds since{};  // time since the last acknowledgement
  std::chrono::microseconds round_trip{};
};
Hearing hearingOf(int socket);

}  // namespace viaduct::base
