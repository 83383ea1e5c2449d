// The sets behind leases: the lent memory of an agent, and the numbers of ended leases.
#include "agent/basis/lent_ranges.h"

#include <gtest/gtest.h>

#include <array>
#include <cstdint>
#include <set>
#include <vector>

#include "agent/peers/number_set.h"
#include "base/random.h"

namespace viaduct::agent {
namespace {

constexpr auto kRead = MemoryAccess::kReadOnly, kWrite = MemoryAccess::kReadWrite;

TEST(LentRanges, LetReadersShareAndWritersNot) {
  LentRanges lent;
  const std::vector<Extent> low{{100, 50}}, middle{{120, 60}}, high{{180, 20}};
  EXPECT_EQ(lent.add(low, kRead), std::nullopt);
  EXPECT_EQ(lent.add(middle, kRead), std::nullopt);
  EXPECT_EQ(lent.add(middle, kWrite), 120U);
  EXPECT_EQ(lent.add(high, kWrite), std::nullopt);
  EXPECT_EQ(lent.add(std::vector<Extent>{{0, 10}, {190, 1}}, kRead), 190U);
  lent.remove(low);
  EXPECT_EQ(lent.add(low, kWrite), 120U);
  lent.remove(middle);
  EXPECT_EQ(lent.add(low, kWrite), std::nullopt);
  lent.remove(low);
  lent.remove(high);
  EXPECT_TRUE(lent.empty());
}

// Compares the set with one counter for each byte.
TEST(LentRanges, AgreeWithACountOfEachByte) {
  constexpr std::uint64_t kBytes = 64;
  struct Lease {
    std::vector<Extent> ranges;
    bool written;
  };
  base::Random random(1);
  for (int round = 0; round < 50; ++round) {
    LentRanges lent;
    std::vector<Lease> leases;
    std::array<int, kBytes> readers{}, writers{};
    const auto count = [&](const Lease& lease, int by) {
      for (const Extent& range : lease.ranges)
        for (std::uint64_t i = 0; i < range.bytes; ++i)
          (lease.written ? writers : readers)[range.address + i] += by;
    };
    for (int step = 0; step < 200; ++step) {
      // Now and then all leases end, so that a set often gets its first lease for writing, a
      // special case.
      if (random.below(20) == 0)
        for (; !leases.empty(); leases.pop_back()) {
          lent.remove(leases.back().ranges);
          count(leases.back(), -1);
        }
      if (!leases.empty() && random.below(3) == 0) {
        const auto gone = leases.begin() + static_cast<std::ptrdiff_t>(random.below(leases.size()));
        lent.remove(gone->ranges);
        count(*gone, -1);
        leases.erase(gone);
        continue;
      }
      Lease lease{{}, random.below(3) == 0};
      for (std::uint64_t at = random.below(40); at < kBytes; at += 2 + random.below(30)) {
        const std::uint64_t bytes = std::min(1 + random.below(10), kBytes - at);
        lease.ranges.push_back({at, bytes});
        at += bytes;
      }
      bool free = true;
      for (const Extent& range : lease.ranges)
        for (std::uint64_t i = range.address; i < range.address + range.bytes; ++i)
          free = free && writers[i] == 0 && (!lease.written || readers[i] == 0);
      ASSERT_EQ(!lent.add(lease.ranges, lease.written ? kWrite : kRead), free);
      if (!free) continue;
      count(lease, 1);
      leases.push_back(std::move(lease));
    }
    for (const Lease& lease : leases) lent.remove(lease.ranges);
    EXPECT_TRUE(lent.empty());
  }
}

// A set divides its ranges at its first lease for writing, or sooner if readers lend very many.
TEST(LentRanges, OfManyReadersAreExactToo) {
  LentRanges lent;
  std::array<std::vector<Extent>, 3> readers;
  for (std::size_t i = 0; i < LentRanges::kMostUndivided; ++i)
    readers[i % 2].push_back({10 * i, 5});
  readers[2] = {{10 * LentRanges::kMostUndivided, 5}};
  for (const auto& ranges : readers) EXPECT_EQ(lent.add(ranges, kRead), std::nullopt);
  const std::vector<Extent> gap{{15, 5}}, last{{10 * LentRanges::kMostUndivided + 4, 3}};
  EXPECT_EQ(lent.add(gap, kWrite), std::nullopt);
  EXPECT_EQ(lent.add(last, kWrite), last.front().address);
  for (const auto& ranges : readers) lent.remove(ranges);
  EXPECT_EQ(lent.add(last, kWrite), std::nullopt);
  lent.remove(last);
  lent.remove(gap);
  EXPECT_TRUE(lent.empty());
}

TEST(NumberSet, AgreesWithASetAndJoinsNeighbours) {
  base::Random random(1);
  NumberSet numbers;
  std::set<std::uint64_t> expected;
  for (int i = 0; i < 500; ++i) {
    const std::uint64_t number = 1 + random.below(300);
    numbers.add(number);
    expected.insert(number);
    for (std::uint64_t any = 0; any < 302; ++any)
      ASSERT_EQ(numbers.has(any), expected.contains(any)) << any;
  }
  for (std::uint64_t number = 1; number <= 300; ++number) numbers.add(number);
  EXPECT_EQ(numbers.intervals(), 1U);
}

}  // namespace
}  // namespace viaduct::agent
