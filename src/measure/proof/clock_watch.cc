#include "measure/proof/clock_watch.h"

#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include <chrono>
#include <cmath>
#include <limits>

namespace viaduct::measure::proof {
namespace {

// How far the clocks may differ. The steady clock, which NTP may slew, differs from the raw clock
// by less than a thousandth.
constexpr double kPartOff = 0.01, kLeastOff = 0.005;  // part of the time; seconds
constexpr double kInOneStep = 0.9;

std::int64_t firstClock() {
  return std::chrono::steady_clock::now().time_since_epoch() / std::chrono::nanoseconds(1);
}

// Uses the system call, so that a library that replaces the C library's clock has no effect.
std::int64_t secondClock() {
  timespec at{};
  ::syscall(SYS_clock_gettime, CLOCK_MONOTONIC_RAW, &at);
  return static_cast<std::int64_t>(at.tv_sec) * 1'000'000'000 + at.tv_nsec;
}

struct BothClocks {
  std::int64_t first = 0, second = 0;
};

// Reads the second clock between two readings of the first, and returns the mean of these two with
// it. Tries again while the two readings are far apart, as after a loss of the processor between
// them.
BothClocks readBoth() {
  constexpr int kTries = 20;
  constexpr std::int64_t kClose = 20'000;  // nanoseconds
  BothClocks best;
  std::int64_t closest = std::numeric_limits<std::int64_t>::max();
  for (int i = 0; i < kTries && closest > kClose; ++i) {
    const std::int64_t before = firstClock(), second = secondClock(), after = firstClock();
    if (after - before >= closest) continue;
    closest = after - before;
    best = {before + closest / 2, second};
  }
  return best;
}

}  // namespace

bool ClockDrift::isImpossible() const { return std::abs(ahead) > kLeastOff + kPartOff * seconds; }

bool ClockDrift::jumped() const { return std::abs(largest) >= kInOneStep * std::abs(ahead); }

void ClockWatch::start() {
  const BothClocks now = readBoth();
  first_ns_ = now.first;
  second_ns_ = now.second;
}

void ClockWatch::look() {
  const BothClocks now = readBoth();
  const double took = static_cast<double>(now.second - second_ns_) * 1e-9;
  const double ahead = static_cast<double>(now.first - first_ns_) * 1e-9 - took;
  drift_.seconds += took;
  drift_.ahead += ahead;
  if (std::abs(ahead) > std::abs(drift_.largest)) drift_.largest = ahead;
  first_ns_ = now.first;
  second_ns_ = now.second;
}

}  // namespace viaduct::measure::proof
