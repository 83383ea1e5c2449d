// Undoes changes of signal handlers by libraries that change them when loaded. Threads: one at a
// time.
#pragma once

#include <signal.h>

#include <array>
#include <cstddef>

namespace viaduct::base {

// The destructor restores the signal handlers that were set at construction.
class KeptSignals {
 public:
  KeptSignals() {
    for (std::size_t n = 1; n < kSignals; ++n)
      known_.at(n) = ::sigaction(static_cast<int>(n), nullptr, &before_.at(n)) == 0;
  }
  ~KeptSignals() {
    for (std::size_t n = 1; n < kSignals; ++n)
      if (known_.at(n)) ::sigaction(static_cast<int>(n), &before_.at(n), nullptr);
  }
  KeptSignals(const KeptSignals&) = delete;
  KeptSignals& operator=(const KeptSignals&) = delete;

 private:
  static constexpr std::size_t kSignals = 32;
  std::array<struct sigaction, kSignals> before_{};
  std::array<bool, kSignals> known_{};
};

}  // namespace viaduct::base
