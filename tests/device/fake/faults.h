// Counts calls, and lets chosen calls fail. Beside the driver's names there are names for work of
// streams: "copy", "kernel", and "overrun" for copies of at most 128 KiB. Such a copy does not
// fail, but writes a byte behind its end. Threads: one at a time.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <string_view>

#include "device/fake/driver_types.h"

namespace viaduct::fakegpu {

class Faults {
 public:
  // With this code, -9 in FAKE_CUDA_FAIL, the process kills itself in place of a failure.
  static constexpr int kKill = -9;

  // Reads "cuMemcpyAsync:3:700,cuMemAlloc:1:2": the third copy and the first allocation fail.
  void plan(const std::string& text);
  // The `nth` call of `call` from now on returns `code`; if `nth` is 0, each does. The code 0 ends
  // the failures of `call`.
  void plan(const std::string& call, unsigned nth, int code);

  // Counts a call, and returns its planned failure or kSuccess.
  CUresult count(std::string_view call);
  std::uint64_t counted(std::string_view call) const;

 private:
  struct Plan {
    unsigned nth = 0;
    int code = 0;
  };
  std::map<std::string, Plan, std::less<>> plans_;
  std::map<std::string, std::uint64_t, std::less<>> counts_;
};

}  // namespace viaduct::fakegpu
