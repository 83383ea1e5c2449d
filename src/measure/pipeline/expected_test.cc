#include "measure/pipeline/expected.h"

#include <gtest/gtest.h>

#include <utility>

#include "measure/pipeline/chunks.h"

namespace viaduct::measure::pipeline {
namespace {

constexpr std::uint64_t kBytes = 3 * kChunkBytes + 77;

std::vector<std::byte> filled(const Expected& expected) {
  std::vector<std::byte> out(kBytes);
  expected.fill(out);
  return out;
}

std::vector<std::uint64_t> digestsOf(std::span<const std::byte> memory) {
  std::vector<std::uint64_t> out;
  for (std::uint64_t i = 0; i < chunksOf(memory.size()); ++i) {
    const Chunk chunk = chunkOf(memory.size(), i);
    out.push_back(digestOf(memory.subspan(chunk.at(), chunk.bytes)));
  }
  return out;
}

TEST(Expected, TheLastChunkIsShorter) {
  EXPECT_EQ(chunksOf(kBytes), 4U);
  EXPECT_EQ(chunkOf(kBytes, 3).bytes, 77U);
  EXPECT_EQ(chunkOf(kBytes, 3).at(), 3 * kChunkBytes);
  EXPECT_EQ(chunkOf(kRingBytes + 5, 8).inRing(), 0U);
  EXPECT_EQ(chunksOf(kChunkBytes), 1U);
}

TEST(Expected, APatternKnowsItsOwnBytesOnly) {
  const Expected now = Expected::pattern(kBytes, 1, 5), before = Expected::pattern(kBytes, 1, 4);
  EXPECT_EQ(now.check(filled(now)), std::nullopt);
  EXPECT_NE(now.check(filled(before)).value_or("").find("stale"), std::string::npos);
  auto damaged = filled(now);
  damaged.back() ^= std::byte{1};
  EXPECT_NE(now.check(damaged).value_or("").find("wrong from byte 6291532 on"), std::string::npos)
      << now.check(damaged).value_or("");
}

TEST(Expected, APieceIsCheckedByTheNumberOfItsFirstChunk) {
  const Expected now = Expected::pattern(kBytes, 1, 5);
  const auto memory = filled(now);
  const auto piece = std::span(memory).subspan(kChunkBytes, kChunkBytes);
  EXPECT_EQ(now.check(piece, 1), std::nullopt);
  EXPECT_TRUE(now.check(piece, 2));
}

TEST(Expected, APeriodRepeatsTheChunks) {
  const Expected ring = Expected::pattern(kBytes, 1, 5, 2);
  const auto memory = filled(ring);
  EXPECT_EQ(ring.check(memory), std::nullopt);
  const auto first = std::span(memory).first(kChunkBytes);
  EXPECT_EQ(ring.check(first, 2), std::nullopt);
  EXPECT_TRUE(ring.check(first, 1));
}

TEST(Expected, DigestsFindAChangedASwappedAndAMissingWord) {
  const auto memory = filled(Expected::pattern(kBytes, 9, 1));
  const Expected user = Expected::digests(kBytes, digestsOf(memory));
  EXPECT_EQ(user.check(memory), std::nullopt);
  auto changed = memory;
  changed[kChunkBytes + 5] ^= std::byte{0x80};
  EXPECT_EQ(user.check(changed), "bytes 2097152 to 4194304 differ from the source");
  auto swapped = memory;
  for (std::size_t i = 0; i < 8; ++i) std::swap(swapped[i], swapped[32 + i]);  // of one lane
  EXPECT_TRUE(user.check(swapped));
  auto blocks = memory;
  std::swap_ranges(blocks.begin(), blocks.begin() + kChunkBytes, blocks.begin() + kChunkBytes);
  EXPECT_TRUE(user.check(blocks));
  EXPECT_TRUE(user.check(std::span(memory).first(kChunkBytes - 8)));
}

}  // namespace
}  // namespace viaduct::measure::pipeline
