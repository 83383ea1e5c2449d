#include "cuda/end_bell.h"

#include <gtest/gtest.h>
#include <poll.h>
#include <sched.h>

#include <atomic>
#include <thread>

namespace viaduct::cuda {
namespace {

bool isReadable(const EndBell& bell) {
  pollfd watched{.fd = bell.fd(), .events = POLLIN, .revents = 0};
  return ::poll(&watched, 1, 0) == 1;
}

TEST(CudaBell, ARingIsSeenUntilItIsCleared) {
  EndBell bell;
  ASSERT_TRUE(bell.open());
  EXPECT_FALSE(bell.rung() || isReadable(bell));
  bell.ring();
  bell.ring();
  EXPECT_TRUE(bell.rung() && isReadable(bell));
  bell.clear();
  EXPECT_FALSE(bell.rung() || isReadable(bell));
}

// A descriptor that stays readable without a ring would wake the agent's thread for ever. Each
// round clears the bell as soon as the other thread has rung it.
TEST(CudaBell, NoRingStaysInTheDescriptorAlone) {
  constexpr int kRounds = 2000;
  EndBell bell;
  ASSERT_TRUE(bell.open());
  std::atomic<int> begun = 0;
  std::atomic<int> rung = 0;
  std::thread ringing([&] {
    for (int round = 1; round <= kRounds; ++round) {
      while (begun.load() != round) ::sched_yield();
      bell.ring();
      rung = round;
    }
  });
  int left_readable = 0;
  for (int round = 1; round <= kRounds; ++round) {
    begun = round;
    while (!bell.rung()) ::sched_yield();
    bell.clear();
    while (rung.load() != round) ::sched_yield();
    if (!bell.rung() && isReadable(bell)) ++left_readable;
    bell.clear();
  }
  ringing.join();
  EXPECT_EQ(left_readable, 0);
}

}  // namespace
}  // namespace viaduct::cuda
