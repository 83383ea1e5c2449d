#include "measure/workload/layout.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <set>

namespace viaduct::measure {
namespace {

constexpr Scheme kSchemes[] = {Scheme::kPairwise, Scheme::kManyToOne, Scheme::kOneToMany,
                               Scheme::kTp};

using Pairs = std::vector<Pair>;

TEST(Pairs, ContainEveryDeviceAndNoDuplicates) {
  for (const Scheme scheme : kSchemes)
    for (std::uint32_t n = 1; n <= 9; ++n)
      for (std::uint32_t m = 1; m <= 9; ++m) {
        const Pairs pairs = pairsOf(scheme, n, m);
        std::set<std::uint32_t> initiators, targets;
        for (const Pair& pair : pairs) {
          initiators.insert(pair.initiator);
          targets.insert(pair.target);
          EXPECT_LT(pair.initiator, n);
          EXPECT_LT(pair.target, m);
        }
        EXPECT_EQ(initiators.size(), n) << schemeName(scheme) << " " << n << " x " << m;
        EXPECT_EQ(targets.size(), m) << schemeName(scheme) << " " << n << " x " << m;
        EXPECT_TRUE(std::is_sorted(pairs.begin(), pairs.end()));
        EXPECT_EQ(std::adjacent_find(pairs.begin(), pairs.end()), pairs.end());
      }
}

TEST(Pairs, AreWhatTheirSchemeSays) {
  EXPECT_EQ(pairsOf(Scheme::kPairwise, 3, 3), (Pairs{{0, 0}, {1, 1}, {2, 2}}));
  EXPECT_EQ(pairsOf(Scheme::kPairwise, 3, 2), (Pairs{{0, 0}, {1, 1}, {2, 0}}));
  EXPECT_EQ(pairsOf(Scheme::kManyToOne, 3, 1), (Pairs{{0, 0}, {1, 0}, {2, 0}}));
  EXPECT_EQ(pairsOf(Scheme::kOneToMany, 1, 3), (Pairs{{0, 0}, {0, 1}, {0, 2}}));
  EXPECT_EQ(pairsOf(Scheme::kManyToOne, 2, 2), (Pairs{{0, 0}, {0, 1}, {1, 0}, {1, 1}}));
}

// Two shards make a pair exactly if some element of the tensor is in both.
TEST(Pairs, OfTensorShardsAreThoseThatShareElements) {
  for (std::uint32_t n = 1; n <= 8; ++n)
    for (std::uint32_t m = 1; m <= 8; ++m) {
      std::set<Pair> sharing;
      for (std::uint32_t element = 0; element < n * m; ++element)
        sharing.insert({element / m, element / n});
      const Pairs pairs = pairsOf(Scheme::kTp, n, m);
      EXPECT_EQ(pairs, Pairs(sharing.begin(), sharing.end())) << n << " x " << m;
    }
  EXPECT_EQ(pairsOf(Scheme::kTp, 2, 4), (Pairs{{0, 0}, {0, 1}, {1, 2}, {1, 3}}));
}

TEST(Streams, ShareOutTheMemoryOfEveryDeviceWithoutRest) {
  for (const Scheme scheme : kSchemes)
    for (const bool both_ways : {false, true}) {
      const Layout layout{.scheme = scheme, .initiators = 3, .targets = 2};
      std::map<std::uint32_t, std::set<std::uint32_t>> initiator_parts, target_parts;
      const auto streams = streamsOf(layout, 2, both_ways);
      for (const Stream& s : streams) {
        EXPECT_TRUE(initiator_parts[s.pair.initiator].insert(s.initiator_part).second);
        EXPECT_TRUE(target_parts[s.pair.target].insert(s.target_part).second);
      }
      for (const Stream& s : streams) {
        EXPECT_EQ(initiator_parts[s.pair.initiator].size(), s.initiator_parts);
        EXPECT_EQ(*initiator_parts[s.pair.initiator].rbegin(), s.initiator_parts - 1);
        EXPECT_EQ(target_parts[s.pair.target].size(), s.target_parts);
        EXPECT_EQ(*target_parts[s.pair.target].rbegin(), s.target_parts - 1);
      }
    }
}

TEST(Layouts, WithoutTargetsEachInitiatorHasItsOwnStorage) {
  const Layout single{.scheme = Scheme::kTp, .initiators = 3, .targets = 0};
  EXPECT_TRUE(single.stored());
  EXPECT_EQ(single.processes(), 3U);
  EXPECT_TRUE(single.isInitiator(2));
  EXPECT_EQ(single.targetRank(1), 1U);
  EXPECT_EQ(pairsOf(single), (Pairs{{0, 0}, {1, 1}, {2, 2}}));
  EXPECT_EQ(streamsOf(single, 2, false).size(), 6U);
  const Layout many{.mode = Mode::kMg, .initiators = 3, .targets = 0};
  EXPECT_EQ(many.processes(), 1U);
  EXPECT_EQ(many.targetRank(2), 0U);
  EXPECT_FALSE(Layout{}.stored());
}

TEST(Layouts, SayWhichProcessOwnsWhat) {
  const Layout single{.initiators = 3, .targets = 2};
  EXPECT_EQ(single.processes(), 5U);
  EXPECT_TRUE(single.isInitiator(2));
  EXPECT_FALSE(single.isInitiator(3));
  EXPECT_EQ(single.targetRank(1), 4U);
  const Layout many{.mode = Mode::kMg, .initiators = 3, .targets = 2};
  EXPECT_EQ(many.processes(), 2U);
  EXPECT_TRUE(many.isInitiator(0));
  EXPECT_FALSE(many.isInitiator(1));
  EXPECT_EQ(many.initiatorRank(2), 0U);
  EXPECT_EQ(many.targetRank(1), 1U);
}

}  // namespace
}  // namespace viaduct::measure
