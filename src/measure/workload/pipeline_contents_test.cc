#include "measure/workload/pipeline_contents.h"

#include <gtest/gtest.h>

#include <utility>

#include "measure/workload/chunks.h"

namespace viaduct::measure::pipeline {
namespace {

constexpr std::uint64_t kChunk = 64 << 10;
constexpr Chunking kChunks{.chunk_bytes = kChunk, .ring_chunks = 2};
constexpr std::uint64_t kBytes = 3 * kChunk + 77;

Expected patternOf(std::uint64_t epoch, std::uint64_t period = 0) {
  return Expected::pattern(kChunks, kBytes, 1, epoch, period);
}

std::vector<std::byte> filled(const Expected& expected) {
  std::vector<std::byte> out(kBytes);
  EXPECT_TRUE(expected.fill(out));
  return out;
}

Wrong check(const Expected& expected, std::span<std::byte> memory, std::uint64_t first = 0) {
  return *expected.verify(memory, first);
}

std::vector<Digest> digestsOf(std::span<const std::byte> memory) {
  std::vector<Digest> out;
  for (std::uint64_t i = 0; i < kChunks.countOf(memory.size()); ++i) {
    const Chunk chunk = kChunks.chunk(memory.size(), i);
    out.push_back(digestOf(memory.subspan(chunk.at, chunk.bytes)));
  }
  return out;
}

TEST(Expected, TheLastChunkIsShorterAndARingStartsAgain) {
  EXPECT_EQ(kChunks.countOf(kBytes), 4U);
  const Chunk last = kChunks.chunk(kBytes, 3);
  EXPECT_EQ(last.bytes, 77U);
  EXPECT_EQ(last.at, 3 * kChunk);
  EXPECT_EQ(last.in_ring, kChunk);
  EXPECT_EQ(kChunks.countOf(kChunk), 1U);
}

TEST(Expected, APatternKnowsItsOwnBytesOnly) {
  const Expected now = patternOf(5), before = patternOf(4);
  auto memory = filled(now), old = filled(before), damaged = memory;
  EXPECT_EQ(check(now, memory), std::nullopt);
  EXPECT_NE(check(now, old).value_or("").find("stale"), std::string::npos);
  damaged.back() ^= std::byte{1};
  EXPECT_NE(check(now, damaged).value_or("").find("wrong from byte 196684 on"), std::string::npos)
      << check(now, damaged).value_or("");
}

TEST(Expected, APieceIsCheckedByTheNumberOfItsFirstChunk) {
  const Expected now = patternOf(5);
  auto memory = filled(now);
  const auto piece = std::span(memory).subspan(kChunk, kChunk);
  EXPECT_EQ(check(now, piece, 1), std::nullopt);
  EXPECT_TRUE(check(now, piece, 2));
}

TEST(Expected, APeriodRepeatsTheChunks) {
  const Expected ring = patternOf(5, 2);
  auto memory = filled(ring);
  EXPECT_EQ(check(ring, memory), std::nullopt);
  const auto first = std::span(memory).first(kChunk);
  EXPECT_EQ(check(ring, first, 2), std::nullopt);
  EXPECT_TRUE(check(ring, first, 1));
}

TEST(Expected, DigestsFindAChangedASwappedAndAMissingWord) {
  auto memory = filled(patternOf(1));
  const Expected user = Expected::digests(kChunks, kBytes, digestsOf(memory));
  EXPECT_EQ(check(user, memory), std::nullopt);
  auto changed = memory;
  changed[kChunk + 5] ^= std::byte{0x80};
  EXPECT_EQ(check(user, changed), "bytes 65536 to 131072 differ from the source");
  auto swapped = memory;
  for (std::size_t i = 0; i < 8; ++i) std::swap(swapped[i], swapped[32 + i]);  // of one lane
  EXPECT_TRUE(check(user, swapped));
  auto blocks = memory;
  std::swap_ranges(blocks.begin(), blocks.begin() + kChunk, blocks.begin() + kChunk);
  EXPECT_TRUE(check(user, blocks));
  EXPECT_TRUE(check(user, std::span(memory).first(kChunk - 8)));
}

}  // namespace
}  // namespace viaduct::measure::pipeline
