// Random numbers: a seeded generator for tests and injected faults, and the system's for secrets.
#pragma once

#include <viaduct/result.h>

#include <cstddef>
#include <cstdint>
#include <span>

#include "base/splitmix.h"

namespace viaduct::base {

// splitmix64: small and fast; the same seed gives the same numbers everywhere.
class Random {
 public:
  constexpr explicit Random(std::uint64_t seed) : state_(seed) {}
  constexpr std::uint64_t next() { return splitmix(state_ += kSplitmixStep); }
  std::uint64_t below(std::uint64_t bound) { return bound == 0 ? 0 : next() % bound; }
  bool chance(double p) { return static_cast<double>(next() >> 11U) * 0x1.0p-53 < p; }

 private:
  std::uint64_t state_;
};

// Fills with bytes that nobody can guess.
Status fillSecret(std::span<std::uint8_t> out);
// A number that nobody can guess.
Result<std::uint64_t> secretNumber();

}  // namespace viaduct::base
