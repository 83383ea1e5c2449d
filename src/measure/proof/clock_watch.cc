#include "measure/proof/clock_watch.h"

#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include <chrono>
#include <cmath>

namespace viaduct::measure::proof {
namespace {

// A clock that a network time service slews differs from the raw one by less than a thousandth.
constexpr double kPartOff = 0.01, kLeastOff = 0.005;  // of the time, and in seconds
constexpr double kInOneStep = 0.9;

std::int64_t firstClock() {
  return std::chrono::steady_clock::now().time_since_epoch() / std::chrono::nanoseconds(1);
}

// By the system call: what has replaced the C library's clock does not replace this one.
std::int64_t secondClock() {
  timespec at{};
  ::syscall(SYS_clock_gettime, CLOCK_MONOTONIC_RAW, &at);
  return static_cast<std::int64_t>(at.tv_sec) * 1'000'000'000 + at.tv_nsec;
}

}  // namespace

bool ClockDrift::isImpossible() const { return std::abs(ahead) > kLeastOff + kPartOff * seconds; }

bool ClockDrift::jumped() const { return std::abs(largest) >= kInOneStep * std::abs(ahead); }

void ClockWatch::start() {
  first_ns_ = firstClock();
  second_ns_ = secondClock();
}

void ClockWatch::look() {
  const std::int64_t first = firstClock(), second = secondClock();
  const double took = static_cast<double>(second - second_ns_) * 1e-9;
  const double ahead = static_cast<double>(first - first_ns_) * 1e-9 - took;
  drift_.seconds += took;
  drift_.ahead += ahead;
  if (std::abs(ahead) > std::abs(drift_.largest)) drift_.largest = ahead;
  first_ns_ = first;
  second_ns_ = second;
}

}  // namespace viaduct::measure::proof
