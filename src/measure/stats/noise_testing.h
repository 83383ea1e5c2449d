// How the rate of a machine changes from run to run, for simulations. Threads: one at a time.
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

// The rates of runs that follow each other.
using Noise = std::vector<double> (*)(std::size_t runs, base::Random& random);

inline std::vector<double> evenNoise(std::size_t runs, base::Random& random) {
  std::vector<double> out(runs);
  for (double& rate : out) rate = std::exp(0.03 * normal(random));
  return out;
}

// Now and then a run is slower by far: the delay has no mean.
inline std::vector<double> heavyTails(std::size_t runs, base::Random& random) {
  std::vector<double> out(runs);
  for (double& rate : out)
    rate = 1 / (1 + 0.02 * std::abs(std::tan(std::numbers::pi * (uniform(random) - 0.5))));
  return out;
}

// A machine that gets slower by 3 % with each run, or faster.
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

// Load of others that comes, stays for some runs, and goes.
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
