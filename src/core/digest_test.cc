#include <gtest/gtest.h>
#include <viaduct/digest.h>

#include <algorithm>
#include <cstring>
#include <string>
#include <vector>

#include "base/random.h"
#include "support/bytes.h"

namespace viaduct {
namespace {

using Bytes = std::vector<std::byte>;

Bytes randomBytes(std::size_t count, std::uint64_t seed) {
  Bytes out(count);
  testing::fillRandom(out, seed);
  return out;
}

// Blocks with contents that weak sums confuse.
std::vector<Bytes> someBlocks() {
  Bytes counting(4096), small(4096);
  for (std::size_t i = 0; i < counting.size(); i += 8) {
    const std::uint64_t number = i / 8;
    std::memcpy(counting.data() + i, &number, sizeof number);
    small[i] = static_cast<std::byte>(i / 8 % 3);
  }
  return {randomBytes(4096, 1), randomBytes(1000, 2),        counting, small,
          Bytes(4096),          Bytes(4096, std::byte{0xff})};
}

TEST(Digest, OfSomeBlocksNeverChanges) {
  EXPECT_EQ(digestOf({}).text(), "a706dd2f4d197e6fe220a8397b1dcdaf");
  EXPECT_EQ(digestOf(Bytes(1)).text(), "5a0e0e79d930b5ee5a0abe1719745993");
  EXPECT_EQ(digestOf(Bytes(5000, std::byte{7})).text(), "1813e5f83f8b67b9f3cd76daf54e821d");
}

TEST(Digest, DoesNotDependOnTheAddress) {
  const Bytes block = randomBytes(4096, 3);
  Bytes memory(8192);
  for (std::size_t at = 0; at < 130; ++at) {
    std::memcpy(memory.data() + at, block.data(), block.size());
    EXPECT_EQ(digestOf(std::span(memory).subspan(at, block.size())), digestOf(block)) << at;
  }
}

TEST(Digest, FindsEveryFlippedBit) {
  for (Bytes& block : someBlocks()) {
    const Digest right = digestOf(block);
    for (std::size_t at = 0; at < block.size(); at += block.size() > 1000 ? 37 : 1)
      for (unsigned bit = 0; bit < 8; ++bit) {
        const std::byte old = block[at];
        block[at] ^= std::byte{1} << bit;
        EXPECT_NE(digestOf(block), right) << "byte " << at << ", bit " << bit;
        block[at] = old;
      }
  }
}

// The upper bits of two words cancel each other in a plain sum.
TEST(Digest, FindsTwoFlippedBitsInTheSamePlaceOfTwoWords) {
  for (Bytes& block : someBlocks()) {
    const Digest right = digestOf(block);
    const std::size_t words = block.size() / 8;
    base::Random random(4);
    for (int i = 0; i < 2000; ++i) {
      const std::size_t bit = random.below(64), first = random.below(words);
      const std::size_t second = (first + 1 + random.below(words - 1)) % words;
      const Bytes old = block;
      for (const std::size_t word : {first, second})
        block[8 * word + bit / 8] ^= std::byte{1} << (bit % 8);
      EXPECT_NE(digestOf(block), right) << "bit " << bit << " of words " << first << ", " << second;
      block = old;
    }
  }
}

TEST(Digest, FindsSwappedPieces) {
  for (const Bytes& block : someBlocks()) {
    const Digest right = digestOf(block);
    base::Random random(5);
    for (int i = 0; i < 2000; ++i) {
      const std::size_t bytes = std::size_t{1} << random.below(9);
      const auto first = random.below(block.size() / bytes) * bytes;
      const auto second = random.below(block.size() / bytes) * bytes;
      Bytes other = block;
      std::memcpy(other.data() + first, block.data() + second, bytes);
      std::memcpy(other.data() + second, block.data() + first, bytes);
      EXPECT_EQ(digestOf(other) == right, other == block)
          << bytes << " bytes at " << first << " and " << second;
    }
  }
}

TEST(Digest, FindsShiftedBytes) {
  for (const Bytes& block : someBlocks()) {
    for (std::size_t by = 1; by < block.size(); by = by < 20 ? by + 1 : by * 2) {
      Bytes other = block;
      std::rotate(other.begin(), other.begin() + static_cast<std::ptrdiff_t>(by), other.end());
      EXPECT_EQ(digestOf(other) == digestOf(block), other == block) << "by " << by;
    }
  }
}

// The wrong bytes stand for a page of another time or block, or a page that was never written.
TEST(Digest, FindsAStaleOrEmptyPartOfEachSize) {
  const Bytes block = randomBytes(65536, 6), stale = randomBytes(65536, 7), empty(65536);
  const Digest right = digestOf(block);
  for (std::size_t bytes = 1; bytes <= block.size(); bytes *= 2)
    for (std::size_t at = 0; at < block.size(); at += std::max<std::size_t>(bytes, 4096))
      for (const Bytes& part : {stale, empty}) {
        Bytes other = block;
        std::memcpy(other.data() + at, part.data() + at, bytes);
        EXPECT_EQ(digestOf(other) == right, other == block) << bytes << " bytes at " << at;
      }
}

TEST(Digest, TellsEmptyBlocksOfEachLengthApart) {
  const Bytes zeros(3000);
  std::vector<std::string> seen;
  for (std::size_t bytes = 0; bytes <= zeros.size(); ++bytes)
    seen.push_back(digestOf(std::span(zeros).first(bytes)).text());
  std::ranges::sort(seen);
  EXPECT_EQ(std::ranges::adjacent_find(seen), seen.end());
}

TEST(BlockDigest, OfPiecesInAnyOrderIsThatOfTheBlock) {
  base::Random random(8);
  for (int round = 0; round < 300; ++round) {
    const Bytes block = randomBytes(1 + random.below(3000), random.next());
    std::vector<std::pair<std::size_t, std::size_t>> pieces;
    for (std::size_t at = 0; at < block.size();) {
      const std::size_t bytes = std::min(8 * (1 + random.below(100)), block.size() - at);
      pieces.emplace_back(at, bytes);
      at += bytes;
    }
    for (std::size_t i = pieces.size(); i > 1; --i)
      std::swap(pieces[i - 1], pieces[random.below(i)]);
    BlockDigest some, others;
    for (const auto& [at, bytes] : pieces)
      EXPECT_TRUE(
          (random.chance(0.5) ? some : others).add(at, std::span(block).subspan(at, bytes)));
    some.add(others);
    EXPECT_EQ(some.digest(), digestOf(block)) << "round " << round;
  }
}

TEST(BlockDigest, RefusesAPieceThatBeginsInsideAWord) {
  BlockDigest digest;
  const Status added = digest.add(12, Bytes(8));
  ASSERT_FALSE(added);
  EXPECT_EQ(added.error().code, Code::kInvalid);
  EXPECT_EQ(digest.digest(), digestOf({}));
}

TEST(EncodedDigests, AreReadBack) {
  std::vector<Digest> digests;
  for (std::uint64_t i = 0; i < 5; ++i) {
    EXPECT_EQ(decodeDigests(encodeDigests(digests)).value(), digests);
    digests.push_back({i, ~i});
  }
  EXPECT_EQ(encodeDigests(digests).size(), 24 + 16 * digests.size());
}

TEST(EncodedDigests, AreRefusedWhenDamagedOrCut) {
  const Bytes blob = encodeDigests(std::vector<Digest>{{1, 2}, {3, 4}});
  for (std::size_t bytes = 0; bytes < blob.size(); ++bytes)
    EXPECT_FALSE(decodeDigests(std::span(blob).first(bytes))) << bytes << " bytes";
  for (std::size_t at = 0; at < blob.size(); ++at) {
    Bytes other = blob;
    other[at] ^= std::byte{4};
    EXPECT_FALSE(decodeDigests(other)) << "byte " << at;
  }
}

}  // namespace
}  // namespace viaduct
