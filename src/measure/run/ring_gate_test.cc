#include "measure/run/ring_gate.h"

#include <gtest/gtest.h>

#include <thread>
#include <vector>

namespace viaduct::measure::pipeline {
namespace {

using namespace std::chrono_literals;
using Turn = RingGate::Turn;

TEST(RingGate, AChunkIsEmptiedAfterItWasFilled) {
  RingGate gate(10, 3);
  EXPECT_EQ(gate.toEmpty(1, 0s), Turn::kLater);
  gate.fill(2);
  EXPECT_EQ(gate.toEmpty(2, 0s), Turn::kNow);
  EXPECT_EQ(gate.toEmpty(3, 0s), Turn::kLater);
}

TEST(RingGate, APlaceIsFilledAgainAfterItWasEmptied) {
  RingGate gate(10, 3);
  EXPECT_EQ(gate.toFill(3, 0s), Turn::kNow);
  EXPECT_EQ(gate.toFill(4, 0s), Turn::kLater);
  gate.empty(1);
  EXPECT_EQ(gate.toFill(4, 0s), Turn::kNow);
  EXPECT_EQ(gate.toFill(5, 0s), Turn::kLater);
}

// Compares RingGate with a model that stores the last chunk of each place.
TEST(RingGate, EachPassBeginsAtTheFirstPlace) {
  for (const std::uint64_t chunks : {1U, 2U, 5U, 6U, 7U})
    for (const std::uint64_t places : {1U, 2U, 3U, 6U, 9U}) {
      std::vector<std::uint64_t> emptied_for(places, 0);  // the chunks that must be emptied
      for (std::uint64_t k = 0; k < 4 * chunks; ++k) {
        const std::uint64_t needed = std::exchange(emptied_for[k % chunks % places], k + 1);
        RingGate gate(chunks, places);
        if (needed > 0) {
          gate.empty(needed - 1);
          EXPECT_EQ(gate.toFill(k + 1, 0s), Turn::kLater) << chunks << " " << places << " " << k;
        }
        gate.empty(needed);
        EXPECT_EQ(gate.toFill(k + 1, 0s), Turn::kNow) << chunks << " " << places << " " << k;
      }
    }
}

TEST(RingGate, ACompleteRingIsEmptiedToTheEnd) {
  RingGate gate(2, 2);
  gate.fill(2);
  gate.complete();
  EXPECT_EQ(gate.toEmpty(2, 0s), Turn::kNow);
  EXPECT_EQ(gate.toEmpty(3, 0s), Turn::kComplete);
}

TEST(RingGate, AFailureEndsBothFlows) {
  RingGate gate(2, 2);
  gate.fill(2);
  gate.fail();
  EXPECT_EQ(gate.toEmpty(1, 0s), Turn::kBroken);
  EXPECT_EQ(gate.toFill(3, 0s), Turn::kBroken);
}

TEST(RingGate, AWaitEndsWithTheChange) {
  RingGate gate(4, 1);
  std::thread other([&] { gate.fill(1); });
  EXPECT_EQ(gate.toEmpty(1, 60s), Turn::kNow);
  other.join();
}

TEST(RingGate, TheOtherMemberHearsEachChange) {
  RingGate here(4, 2), there(4, 2);
  bool busy = false;
  here.tellWith([&](const RingCounts& counts) {
    if (!busy) there.hear(counts);
    return !busy;
  });
  here.fill(1);
  EXPECT_EQ(there.toEmpty(1, 0s), Turn::kNow);
  busy = true;
  here.fill(2);
  EXPECT_EQ(there.toEmpty(2, 0s), Turn::kLater);
  busy = false;
  here.tellAgain();
  EXPECT_EQ(there.toEmpty(2, 0s), Turn::kNow);
  here.complete();
  EXPECT_EQ(there.toEmpty(3, 0s), Turn::kComplete);
  here.fail();
  EXPECT_EQ(there.toFill(1, 0s), Turn::kBroken);
}

}  // namespace
}  // namespace viaduct::measure::pipeline
