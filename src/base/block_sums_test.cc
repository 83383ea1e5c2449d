#include "base/block_sums.h"

#include <gtest/gtest.h>

#include <cstring>
#include <set>
#include <vector>

#include "base/random.h"

namespace viaduct::base {
namespace {

std::vector<std::byte> randomBytes(std::size_t count, std::uint64_t seed) {
  std::vector<std::byte> out(count);
  Random random(seed);
  for (std::byte& one : out) one = static_cast<std::byte>(random.next());
  return out;
}

// Computes the sums by their definition, word by word.
BlockSums slowSums(std::uint64_t offset, std::span<const std::byte> bytes) {
  BlockSums out;
  for (std::size_t at = 0; at < bytes.size(); at += 8) {
    std::uint64_t word = 0;
    for (std::size_t i = at; i < std::min(at + 8, bytes.size()); ++i)
      word |= std::to_integer<std::uint64_t>(bytes[i]) << (8 * (i - at));
    const std::uint64_t number = (offset + at) / 8;
    const std::uint64_t x = word ^ stripeKey(number % kStripeWords);
    const std::uint64_t weight = 2 * (number / kStripeWords) + 1;
    out.plain += weight * x;
    out.product += weight * ((x & 0xffffffffU) * (x >> 32U));
  }
  return out;
}

TEST(BlockSums, AreAsDefinedForEachLengthOffsetAndAlignment) {
  const auto bytes = randomBytes(3000, 1);
  const std::span all(bytes);
  for (std::size_t shift = 0; shift < 9; ++shift)
    for (std::size_t length = 0; length <= 300; ++length)
      for (const std::uint64_t offset : {0, 8, 504, 512, 1000}) {
        const auto part = all.subspan(shift, length);
        ASSERT_EQ(blockSums(offset, part), slowSums(offset, part))
            << length << " bytes at " << offset << ", " << shift << " bytes into memory";
      }
  for (std::size_t length = 500; length <= 2900; length += 7)
    for (const std::uint64_t offset :
         {std::uint64_t{0}, std::uint64_t{264}, std::uint64_t{1} << 40U})
      ASSERT_EQ(blockSums(offset, all.first(length)), slowSums(offset, all.first(length)))
          << length << " bytes at " << offset;
}

TEST(BlockSums, EveryImplementationThatRunsHereAgrees) {
  const auto bytes = randomBytes(65 * kStripeBytes, 2);
  const StripeSummer& plain = stripeSummers().back();
  EXPECT_STREQ(plain.name, "plain");
  for (const StripeSummer& summer : stripeSummers())
    for (std::size_t shift = 0; shift < 66; ++shift)
      for (const std::size_t stripes : {0, 1, 2, 3, 63})
        ASSERT_EQ(summer.sum(bytes.data() + shift, stripes),
                  plain.sum(bytes.data() + shift, stripes))
            << summer.name << ", " << stripes << " stripes, " << shift << " bytes into memory";
}

TEST(BlockSums, TheKeysNeverChange) {
  std::set<std::uint64_t> keys;
  for (std::size_t i = 0; i < kStripeWords; ++i) keys.insert(stripeKey(i));
  EXPECT_EQ(keys.size(), kStripeWords);
  EXPECT_EQ(stripeKey(0), 1916681861624882443U);
  EXPECT_EQ(stripeKey(kStripeWords - 1), 13656101890044165882U);
}

}  // namespace
}  // namespace viaduct::base
