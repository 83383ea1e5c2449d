#include "measure/pipeline/expected.h"

#include <gtest/gtest.h>

#include <utility>

#include "base/sizes.h"

namespace viaduct::measure::pipeline {
namespace {

using base::kMiB;

constexpr std::uint64_t kBytes = 3 * kMiB + 77;

std::vector<std::byte> filled(const Expected& expected) {
  std::vector<std::byte> out(kBytes);
  expected.fill(out);
  return out;
}

std::vector<std::uint64_t> digestsOf(std::span<const std::byte> memory) {
  std::vector<std::uint64_t> out;
  for (std::size_t at = 0; at < memory.size(); at += kMiB)
    out.push_back(digestOf(memory.subspan(at, std::min<std::size_t>(kMiB, memory.size() - at))));
  return out;
}

TEST(Expected, BlocksStaySmallEnoughForTheirDigestsToFitIntoAMessage) {
  EXPECT_EQ(checkedBlock(1), kMiB);
  EXPECT_EQ(checkedBlock(16'384 * kMiB), kMiB);
  EXPECT_EQ(checkedBlock(16'384 * kMiB + 1), 2 * kMiB);
}

TEST(Expected, APatternKnowsItsOwnBytesOnly) {
  const Expected now = Expected::pattern(kBytes, 1, 5), before = Expected::pattern(kBytes, 1, 4);
  EXPECT_EQ(now.check(filled(now)), std::nullopt);
  EXPECT_NE(now.check(filled(before)).value_or("").find("stale"), std::string::npos);
  auto damaged = filled(now);
  damaged.back() ^= std::byte{1};
  EXPECT_NE(now.check(damaged).value_or("").find("wrong from byte 3145804 on"), std::string::npos)
      << now.check(damaged).value_or("");
}

TEST(Expected, APieceIsCheckedByTheNumberOfItsFirstBlock) {
  const Expected now = Expected::pattern(kBytes, 1, 5);
  const auto memory = filled(now);
  const auto piece = std::span(memory).subspan(kMiB, kMiB);
  EXPECT_EQ(now.check(piece, 1), std::nullopt);
  EXPECT_TRUE(now.check(piece, 2));
}

TEST(Expected, DigestsFindAChangedASwappedAndAMissingWord) {
  const auto memory = filled(Expected::pattern(kBytes, 9, 1));
  const Expected user = Expected::digests(kBytes, digestsOf(memory));
  EXPECT_EQ(user.check(memory), std::nullopt);
  auto changed = memory;
  changed[2 * kMiB + 5] ^= std::byte{0x80};
  EXPECT_EQ(user.check(changed), "bytes 2097152 to 3145728 differ from the source");
  auto swapped = memory;
  for (std::size_t i = 0; i < 8; ++i) std::swap(swapped[i], swapped[32 + i]);  // of one lane
  EXPECT_TRUE(user.check(swapped));
  auto blocks = memory;
  std::swap_ranges(blocks.begin(), blocks.begin() + kMiB, blocks.begin() + kMiB);
  EXPECT_TRUE(user.check(blocks));
  EXPECT_TRUE(user.check(std::span(memory).first(kMiB - 8)));
}

}  // namespace
}  // namespace viaduct::measure::pipeline
