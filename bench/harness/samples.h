// Repeated measurements, the turns in which they are taken, and the clocks. Threads: plain values,
// pure functions.
#pragma once

#include <time.h>
#include <viaduct/deadline.h>

#include <array>
#include <cstddef>
#include <functional>
#include <vector>

namespace viaduct::bench {

// Measurements of one thing, in the order of the rounds.
class Samples {
 public:
  void add(double value) { values_.push_back(value); }
  std::size_t size() const { return values_.size(); }
  double operator[](std::size_t round) const { return values_[round]; }
  double median() const { return quantile(0.5); }
  double least() const { return quantile(0); }
  double most() const { return quantile(1); }
  double quantile(double part) const;

  // The ratio of each round. The median of the ratios does not depend on the machine's speed.
  friend Samples operator/(const Samples& a, const Samples& b);
  // Rates from times.
  friend Samples operator/(double amount, const Samples& times);

 private:
  std::vector<double> values_;
};

// Takes one measurement. Rounds below 0 warm up and are not counted.
using Sampler = std::function<double(int round)>;
struct Rounds {
  int counted, warm_up = 0;
};
// Calls `each` for every item once in each round, so that a change of the machine's speed affects
// all alike.
template <class Items, class Do>
void inTurns(Rounds rounds, Items& items, const Do& each) {
  for (int round = -rounds.warm_up; round < rounds.counted; ++round)
    for (auto& item : items) each(item, round);
}
template <std::size_t N>
std::array<Samples, N> inTurns(Rounds rounds, const Sampler (&ways)[N]) {
  std::array<Samples, N> out;
  inTurns(rounds, ways, [&](const Sampler& way, int round) {
    const double measured = way(round);
    if (round >= 0) out[static_cast<std::size_t>(&way - ways)].add(measured);
  });
  return out;
}

inline double secondsBetween(Clock::time_point start, Clock::time_point end) {
  return std::chrono::duration<double>(end - start).count();
}
inline double secondsSince(Clock::time_point start) { return secondsBetween(start, Clock::now()); }
template <class Work>
double secondsOf(const Work& work) {
  const auto start = Clock::now();
  work();
  return secondsSince(start);
}
// Returns the mean seconds of a call, over `calls` calls.
template <class Work>
double secondsPerCall(std::size_t calls, const Work& work) {
  return secondsOf([&] {
           for (std::size_t i = 0; i < calls; ++i) work();
         }) /
         static_cast<double>(calls);
}
// Returns the mean seconds of a call, over all calls that begin within `length`.
template <class Work>
double secondsPerCall(Duration length, const Work& work) {
  std::size_t calls = 0;
  const auto start = Clock::now();
  auto now = start;
  for (; now - start < length; now = Clock::now(), ++calls) work();
  return secondsBetween(start, now) / static_cast<double>(calls);
}

// The processor time that this process, or its calling thread, has used.
double processorSeconds(clockid_t clock = CLOCK_PROCESS_CPUTIME_ID);
// The memory of this process that has pages.
double residentKiB();

}  // namespace viaduct::bench
