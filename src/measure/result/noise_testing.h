// Simulates the noise of a machine's rate from run to run. Threads: one at a time.
#pragma once

#include <array>
#include <cmath>
#include <cstddef>
#include <numbers>
#include <vector>

#include "base/random.h"

namespace viaduct::measure {

inline double uniform(base::Random& random) {
  return (static_cast<double>(random.next() >> 11U) + 0.5) * 0x1.0p-53;
}

inline double normal(base::Random& random) {
  return std::sqrt(-2 * std::log(uniform(random))) *
         std::cos(2 * std::numbers::pi * uniform(random));
}

// Returns the rates of consecutive runs.
using Noise = std::vector<double> (*)(std::size_t runs, base::Random& random);

inline std::vector<double> evenNoise(std::size_t runs, base::Random& random) {
  std::vector<double> out(runs);
  for (double& rate : out) rate = std::exp(0.03 * normal(random));
  return out;
}

// Some runs are far slower. The delay has no finite mean.
inline std::vector<double> heavyTails(std::size_t runs, base::Random& random) {
  std::vector<double> out(runs);
  for (double& rate : out)
    rate = 1 / (1 + 0.02 * std::abs(std::tan(std::numbers::pi * (uniform(random) - 0.5))));
  return out;
}

// The machine gets slower by 3 % with each run, or faster.
inline std::vector<double> steadyDrift(std::size_t runs, base::Random& random) {
  std::vector<double> out(runs);
  const double step = random.chance(0.5) ? 0.03 : -0.03;
  double log = 0;
  for (double& rate : out) rate = std::exp((log += step) + 0.01 * normal(random));
  return out;
}

inline std::vector<double> randomWalk(std::size_t runs, base::Random& random) {
  std::vector<double> out(runs);
  double log = 0;
  for (double& rate : out) rate = std::exp(log += 0.05 * normal(random));
  return out;
}

// Other programs load the machine for some consecutive runs.
inline std::vector<double> burstsOfLoad(std::size_t runs, base::Random& random) {
  std::vector<double> out(runs);
  bool loaded = random.chance(0.3);
  for (double& rate : out) {
    if (random.chance(0.25)) loaded = random.chance(0.3);
    rate = (loaded ? 0.6 : 1) * std::exp(0.02 * normal(random));
  }
  return out;
}

struct NamedNoise {
  const char* name;
  Noise noise;
};
inline constexpr std::array kNoises{
    NamedNoise{"even", evenNoise}, NamedNoise{"heavy tails", heavyTails},
    NamedNoise{"drift", steadyDrift}, NamedNoise{"random walk", randomWalk},
    NamedNoise{"bursts of load", burstsOfLoad}};

}  // namespace viaduct::measure
