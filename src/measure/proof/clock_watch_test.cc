#include "measure/proof/clock_watch.h"

#include <gtest/gtest.h>

#include <atomic>
#include <cmath>
#include <thread>
#include <vector>

namespace viaduct::measure::proof {
namespace {

// Other threads interrupt the reading thread between the two clocks.
TEST(ClockWatch, ABusyMachineShowsNoClockDrift) {
  std::atomic<bool> over{false};
  std::vector<std::jthread> others;
  for (unsigned i = 0; i < 4 * std::thread::hardware_concurrency(); ++i)
    others.emplace_back([&] {
      while (!over) {
      }
    });
  ClockWatch watch;
  for (int i = 0; i < 200'000; ++i) watch.look();
  over = true;
  EXPECT_FALSE(watch.drift().isImpossible())
      << watch.drift().ahead << " s in " << watch.drift().seconds;
  EXPECT_LT(std::abs(watch.drift().largest), 0.002);
}

TEST(ClockDrift, AJumpIsToldApartFromAConstantDrift) {
  EXPECT_TRUE((ClockDrift{.seconds = 1, .ahead = 5, .largest = 5}.jumped()));
  EXPECT_FALSE((ClockDrift{.seconds = 1, .ahead = 5, .largest = 1}.jumped()));
  EXPECT_FALSE((ClockDrift{.seconds = 1, .ahead = 0.012}.isImpossible()));
  EXPECT_TRUE((ClockDrift{.seconds = 1, .ahead = -0.02}.isImpossible()));
}

}  // namespace
}  // namespace viaduct::measure::proof
