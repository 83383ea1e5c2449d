// Tells TSan that a store through one mapping of a file comes before a load through another
// mapping. TSan keeps its clocks by address, so it does not see this order itself. Empty without
// TSan. docs/gotchas/sanitizers.md. Threads: any.
#pragma once

#include "base/under_tsan.h"

#ifdef VIADUCT_TSAN
#include <sanitizer/tsan_interface.h>
#include <sys/stat.h>

#include <array>
#include <cstdint>
#endif

namespace viaduct::base {

#ifdef VIADUCT_TSAN

class SharedOrder {
 public:
  // `file`: a descriptor of the mapped file.
  explicit SharedOrder(int file) {
    // If two files share a clock, the clock can hide a race but never cause a report.
    static std::array<std::uint64_t, 1024> clocks{};
    struct stat facts{};
    static_cast<void>(::fstat(file, &facts));  // fails only without a file; then clock 0
    clock_ = &clocks[facts.st_ino % clocks.size()];
  }
  // Call this directly before the store (release) that publishes.
  void release() const { __tsan_release(clock_); }
  // Call this directly after the load (acquire) that sees the published value.
  void acquire() const { __tsan_acquire(clock_); }

 private:
  std::uint64_t* clock_ = nullptr;
};

#else

class SharedOrder {
 public:
  explicit SharedOrder(int /*file*/) {}
  void release() const {}
  void acquire() const {}
};

#endif

}  // namespace viaduct::base
