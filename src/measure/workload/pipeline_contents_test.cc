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
  expected.fill(out);
  return out;
}

std::vector<std::uint64_t> digestsOf(std::span<const std::byte> memory) {
  std::vector<std::uint64_t> out;
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
  EXPECT_EQ(now.check(filled(now)), std::nullopt);
  EXPECT_NE(now.check(filled(before)).value_or("").find("stale"), std::string::npos);
  auto damaged = filled(now);
  damaged.back() ^= std::byte{1};
  EXPECT_NE(now.check(damaged).value_or("").find("wrong from byte 196684 on"), std::string::npos)
      << now.check(damaged).value_or("");
}

TEST(Expected, APieceIsCheckedByTheNumberOfItsFirstChunk) {
  const Expected now = patternOf(5);
  const auto memory = filled(now);
  const auto piece = std::span(memory).subspan(kChunk, kChunk);
  EXPECT_EQ(now.check(piece, 1), std::nullopt);
  EXPECT_TRUE(now.check(piece, 2));
}

TEST(Expected, APeriodRepeatsTheChunks) {
  const Expected ring = patternOf(5, 2);
  const auto memory = filled(ring);
  EXPECT_EQ(ring.check(memory), std::nullopt);
  const auto first = std::span(memory).first(kChunk);
  EXPECT_EQ(ring.check(first, 2), std::nullopt);
  EXPECT_TRUE(ring.check(first, 1));
}

TEST(Expected, DigestsFindAChangedASwappedAndAMissingWord) {
  const auto memory = filled(patternOf(1));
  const Expected user = Expected::digests(kChunks, kBytes, digestsOf(memory));
  EXPECT_EQ(user.check(memory), std::nullopt);
  auto changed = memory;
  changed[kChunk + 5] ^= std::byte{0x80};
  EXPECT_EQ(user.check(changed), "bytes 65536 to 131072 differ from the source");
  auto swapped = memory;
  for (std::size_t i = 0; i < 8; ++i) std::swap(swapped[i], swapped[32 + i]);  // of one lane
  EXPECT_TRUE(user.check(swapped));
  auto blocks = memory;
  std::swap_ranges(blocks.begin(), blocks.begin() + kChunk, blocks.begin() + kChunk);
  EXPECT_TRUE(user.check(blocks));
  EXPECT_TRUE(user.check(std::span(memory).first(kChunk - 8)));
}

}  // namespace
}  // namespace viaduct::measure::pipeline
