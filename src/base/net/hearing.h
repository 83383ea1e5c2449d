// What the kernel knows of the way to a TCP socket's other host, whatever the process there does.
// Threads: any.
#pragma once

#include <chrono>
#include <cstdint>

namespace viaduct::base {

struct Hearing {
  bool awaited = false;               // something that was sent is not acknowledged
  bool repeats = false;               // and has been sent again for that
  std::uint64_t acknowledged = 0;     // bytes, ever
  std::chrono::milliseconds since{};  // the last acknowledgement
  std::chrono::microseconds round_trip{};
};
Hearing hearingOf(int socket);

}  // namespace viaduct::base
