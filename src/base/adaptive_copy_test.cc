#include "base/adaptive_copy.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <vector>

#include "base/random.h"

namespace viaduct::base {
namespace {

using Strategy = AdaptiveCopy::Strategy;

// Jobs of many sizes follow each other, in pieces of any size and alignment. So a job may begin
// while the previous job's probe is incomplete.
TEST(AdaptiveCopy, CopiesEveryByteAndNoOther) {
  constexpr std::size_t kRoom = 9U << 20U;
  constexpr std::byte kUntouched{0xee};
  Random random(5);
  std::vector<std::byte> from(kRoom);
  for (std::byte& b : from) b = static_cast<std::byte>(random.below(200));
  AdaptiveCopy copies;
  for (const Strategy strategy : {Strategy::kMeasure, Strategy::kPlain, Strategy::kWide})
    for (const std::size_t bytes : {1UL, 4096UL, 65536UL, 300'001UL, kRoom - 64}) {
      std::vector<std::byte> to(kRoom, kUntouched);
      const std::size_t start = random.below(64), end = start + bytes;
      copies.begin(strategy, bytes);
      for (std::size_t at = start; at < end;) {
        const std::size_t piece = std::min<std::size_t>(end - at, 1 + random.below(20'000));
        copies.copy(to.data() + at, from.data() + at, piece);
        at += piece;
      }
      copies.finish();
      const auto first = static_cast<std::ptrdiff_t>(start),
                 last = static_cast<std::ptrdiff_t>(end);
      EXPECT_TRUE(std::equal(to.begin() + first, to.begin() + last, from.begin() + first));
      EXPECT_EQ(std::count(to.begin(), to.end(), kUntouched),
                static_cast<std::ptrdiff_t>(kRoom - bytes));
    }
}

}  // namespace
}  // namespace viaduct::base
