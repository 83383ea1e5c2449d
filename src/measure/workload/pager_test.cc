#include "measure/workload/pager.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <set>

#include "measure/workload/replay_plan.h"

namespace viaduct::measure {
namespace {

TraceRequest asking(std::uint32_t tokens, std::vector<std::uint64_t> ids) {
  return {.input_length = tokens, .output_length = 1, .hash_ids = std::move(ids)};
}

TEST(PrefixCache, TheLongestCachedPrefixIsAHit) {
  PrefixCache cache(100, 256, kHashTokens);  // 2 blocks for each hash id
  EXPECT_EQ(cache.take(asking(1536, {1, 2, 3}))->hit_ids, 0U);
  const auto again = cache.take(asking(1536, {1, 2, 9}));
  EXPECT_EQ(again->hit_ids, 2U);
  EXPECT_EQ(again->hit_tokens, 1024U);
  EXPECT_EQ(again->blocks.size(), 6U);
  // An id behind a gap is no hit.
  EXPECT_EQ(cache.take(asking(1536, {8, 2, 3}))->hit_ids, 0U);
}

TEST(PrefixCache, TheSameTokensHaveTheSameBlocks) {
  PrefixCache cache(100, 256, kHashTokens);
  const auto first = cache.take(asking(1024, {1, 2}));
  const auto again = cache.take(asking(1536, {1, 2, 3}));
  for (std::size_t i = 0; i < 4; ++i) EXPECT_EQ(first->blocks[i], again->blocks[i]);
}

TEST(PrefixCache, TheLeastRecentlyUsedIdsLeaveFirst) {
  PrefixCache cache(4, 512, kHashTokens);
  cache.take(asking(1024, {1, 2}));
  cache.take(asking(1024, {3, 4}));
  cache.take(asking(512, {1}));      // uses id 1 again
  cache.take(asking(1024, {5, 6}));  // ids 2 and 4 (a prefix's end) leave
  EXPECT_EQ(cache.take(asking(512, {1}))->hit_ids, 1U);
  EXPECT_EQ(cache.take(asking(512, {3}))->hit_ids, 1U);
  EXPECT_EQ(cache.take(asking(512, {2}))->hit_ids, 0U);
}

TEST(PrefixCache, ALastIdOfFewerTokensNeedsFewerBlocks) {
  PrefixCache cache(100, 16, kHashTokens);
  EXPECT_EQ(cache.take(asking(513, {1, 2}))->blocks.size(), 33U);
  // The id has more tokens now, so it is computed again.
  EXPECT_EQ(cache.take(asking(1024, {1, 2}))->hit_ids, 1U);
}

TEST(PrefixCache, RefusesARequestThatIsLargerThanThePool) {
  PrefixCache cache(2, 512, kHashTokens);
  EXPECT_FALSE(cache.take(asking(1536, {1, 2, 3})));
  EXPECT_TRUE(cache.take(asking(1024, {1, 2})));
}

TEST(PrefixCache, AnIdIsOnlyAHitBehindTheSamePrefix) {
  PrefixCache cache(100, 512, kHashTokens);
  cache.take(asking(1536, {1, 2, 3}));
  cache.take(asking(512, {9}));
  EXPECT_EQ(cache.take(asking(1024, {9, 2}))->hit_ids, 1U);
  EXPECT_EQ(cache.take(asking(512, {2}))->hit_ids, 0U);
  EXPECT_EQ(cache.take(asking(1536, {1, 2, 3}))->hit_ids, 3U);
  // Equal tokens may follow each other.
  EXPECT_EQ(cache.take(asking(1536, {5, 5, 5}))->hit_ids, 0U);
  EXPECT_EQ(cache.take(asking(1536, {5, 5, 6}))->hit_ids, 2U);
}

TEST(PrefixCache, ABlockMayHoldSeveralIds) {
  PrefixCache cache(100, 64, 16);
  EXPECT_EQ(cache.take(asking(100, {1, 2, 3, 4, 5, 6, 7}))->blocks.size(), 2U);
  const auto again = cache.take(asking(128, {1, 2, 3, 4, 5, 6, 8, 9}));
  EXPECT_EQ(again->hit_ids, 4U);
  EXPECT_EQ(again->hit_tokens, 64U);
  const auto whole = cache.take(asking(100, {1, 2, 3, 4, 5, 6, 7}));
  EXPECT_EQ(whole->hit_ids, 7U);
  EXPECT_EQ(whole->hit_tokens, 100U);
  EXPECT_EQ(cache.take(asking(64, {9, 2, 3, 4}))->hit_ids, 0U);
}

TEST(PrefixCache, TokensWithoutIdsAreNeverShared) {
  PrefixCache cache(100, 16, 16);
  for (int i = 0; i < 20; ++i) {
    const auto taken = cache.take(asking(64, {1, 2}));
    EXPECT_EQ(taken->blocks.size(), 4U);
    EXPECT_EQ(taken->hit_tokens, i == 0 ? 0U : 32U);
  }
  cache.take(asking(16, {}));
  EXPECT_EQ(cache.take(asking(16, {0}))->hit_ids, 0U);
  PrefixCache without(100, 48, 0);
  for (int i = 0; i < 60; ++i) {
    const auto taken = without.take(asking(100, {}));
    EXPECT_EQ(taken->blocks.size(), 3U);
    EXPECT_EQ(taken->hit_ids, 0U);
  }
}

TEST(DecodeCache, ReusedBlocksNameTheRequestThatHadThem) {
  DecodeCache cache(4);
  EXPECT_FALSE(cache.take(0, 2)->after);
  EXPECT_FALSE(cache.take(1, 2)->after);
  const auto third = cache.take(2, 1);
  EXPECT_EQ(third->after, 0U);
  EXPECT_EQ(cache.take(3, 3)->after, 1U);
  EXPECT_FALSE(cache.take(4, 5));
}

// Five requests, by hand: hits of 0, 2, 0, 1 and 2 of 2, 3, 2, 2 and 2 hash ids.
TEST(ReplayPlan, HasTheHitsThatAHandComputes) {
  const Trace trace{.requests = {asking(1024, {1, 2}), asking(1536, {1, 2, 3}),
                                 asking(1024, {7, 8}), asking(1024, {1, 9}), asking(1024, {7, 8})}};
  const ReplayPlan plan = planReplay(trace, 64, 64, 1);
  std::vector<std::uint64_t> hits;
  for (const ReplayRequest& request : plan.requests) {
    hits.push_back(request.hit_ids);
    EXPECT_EQ(request.source.size(), request.tokens / 64);
    EXPECT_EQ(request.destination.size(), request.source.size());
    EXPECT_EQ(
        std::set<std::uint32_t>(request.destination.begin(), request.destination.end()).size(),
        request.destination.size());
  }
  EXPECT_EQ(hits, (std::vector<std::uint64_t>{0, 2, 0, 1, 2}));
  // Six ids of eight blocks each.
  const BlockIds source = blocksOf(plan, &ReplayRequest::source);
  EXPECT_EQ(source.size(), 48U);
  EXPECT_EQ(std::set<std::uint32_t>(source.begin(), source.end()).size(), source.size());
  EXPECT_TRUE(std::ranges::is_sorted(blocksOf(plan, &ReplayRequest::destination)));
}

TEST(ReplayPlan, SpeedDividesTimesAndLargeRequestsAreLeftOut) {
  Trace trace{.requests = {asking(512, {1}), asking(5120, {1, 2, 3, 4, 5, 6, 7, 8, 9, 10}),
                           asking(512, {2})}};
  for (std::size_t i = 0; i < 3; ++i) trace.requests[i].time_us = (i + 1) * 1'000'000;
  const ReplayPlan plan = planReplay(trace, 4, 512, 4);
  ASSERT_EQ(plan.requests.size(), 2U);
  EXPECT_EQ(plan.left_out, 1U);
  EXPECT_DOUBLE_EQ(plan.requests[1].due_s, 0.5);
  EXPECT_EQ(plan.requests[1].number, 2U);
}

}  // namespace
}  // namespace viaduct::measure
