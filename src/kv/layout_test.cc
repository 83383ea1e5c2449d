#include "kv/layout.h"

#include <gtest/gtest.h>

#include "kv/kv_testing.h"
#include "kv/ranks.h"
#include "support/text.h"

namespace viaduct::kv {
namespace {

using testing::has;

KvLayout llamaLayout() { return layoutOf(llama(), 16); }

std::string refused(const KvLayout& layout) {
  const auto checked = checkKvLayout(layout);
  return checked ? "accepted" : checked.error().text();
}
std::string refused(const Result<KvLayout>& made) {
  return made ? "accepted" : made.error().text();
}
std::string arranged(const KvLayout& layout) {
  return refused(arrangeKv(layout, KvArrangement::kApart, 0x1000, 10));
}

TEST(KvLayout, APageHasTheTokensAndTheHeadsOfOneRank) {
  KvLayout layout = llamaLayout();
  const auto page = [&] {
    return kvPageBytes(layout, layout.groups[0], layout.groups[0].caches[0]);
  };
  EXPECT_EQ(page(), 32U << 10U);
  layout.tp = 8;
  EXPECT_EQ(page(), 4U << 10U);
  layout.tp = 16;  // more ranks than heads: two ranks have the same head
  EXPECT_EQ(page(), 4U << 10U);
  layout.page_align = 4095;
  EXPECT_EQ(page(), 2U * 4095);
}

TEST(KvLayout, PoolsApartTogetherAndInRows) {
  KvLayout layout = layoutOf({.layers = {0, 1}, .head_size = 4, .element_bytes = 1}, 8);
  const auto places = [&](KvArrangement how) {
    auto made = arrangeKv(layout, how, 1000, 10);
    EXPECT_TRUE(made) << made.error().text();
    EXPECT_EQ(kvExtent(*made), (Extent{1000, 2 * 2 * 10 * 32}));
    return made->groups[0].places;
  };
  using Places = std::vector<KvPlace>;
  EXPECT_EQ(places(KvArrangement::kApart),
            (Places{{1000, 32}, {1320, 32}, {1640, 32}, {1960, 32}}));
  EXPECT_EQ(places(KvArrangement::kTogether),
            (Places{{1000, 64}, {1032, 64}, {1640, 64}, {1672, 64}}));
  EXPECT_EQ(places(KvArrangement::kRows),
            (Places{{1000, 128}, {1032, 128}, {1064, 128}, {1096, 128}}));
}

TEST(KvLayout, GroupsShareTheRowsOfTheWidestOne) {
  KvLayout layout = layoutOf({.layers = {0, 1, 2}, .tensors = 1, .head_size = 4}, 8);
  layout.groups.push_back(
      {.caches = {{.layers = {3}, .tensors = 1, .head_size = 5}}, .block_tokens = 4, .window = 8});
  auto made = arrangeKv(layout, KvArrangement::kRows, 0, 10);
  ASSERT_TRUE(made) << made.error().text();
  EXPECT_EQ(made->groups[0].places[2], (KvPlace{128, 192}));
  EXPECT_EQ(made->groups[1].places[0], (KvPlace{0, 192}));
  EXPECT_EQ(kvExtent(*made).bytes, 1920U);
}

TEST(KvLayout, RanksDivideHeadsOrHaveCopies) {
  EXPECT_EQ(headsOf(8, 4, 3), (Heads{6, 2}));
  EXPECT_EQ(headsOf(8, 8, 3), (Heads{3, 1}));
  EXPECT_EQ(headsOf(4, 16, 7), (Heads{1, 1}));
  EXPECT_TRUE(divides(16, 4) && divides(4, 16) && divides(7, 1));
  EXPECT_FALSE(divides(3, 8) || divides(12, 8) || divides(0, 8) || divides(8, 0));
}

TEST(KvLayout, AnErrorNamesTheFieldAndAPossibleValue) {
  KvLayout layout = llamaLayout();
  layout.tp = 3;
  EXPECT_TRUE(has(arranged(layout), "groups[0].caches[0] (\"kv\").kv_heads is 8, which 3 ranks"));
  EXPECT_TRUE(has(arranged(layout), "the nearest tp is 2 or 4"));
  layout.tp = 12;
  EXPECT_TRUE(has(arranged(layout), "the nearest tp is 8 or 16"));
  layout.tp = 4;
  layout.rank = 4;
  EXPECT_TRUE(has(arranged(layout), "rank is 4, and tp is 4"));
  EXPECT_TRUE(has(arranged(layout), "the ranks are 0 to 3"));
  layout = llamaLayout();
  layout.groups[0].caches[0].entry_tokens = 6;
  EXPECT_TRUE(has(arranged(layout), "the nearest block_tokens is 18"));
  layout = llamaLayout();
  layout.groups[0].caches[0].tensors = 3;
  EXPECT_TRUE(has(arranged(layout), ".tensors is 3; what to do: use 2 for K")) << arranged(layout);
  layout = llamaLayout();
  layout.groups[0].caches[0].layers = {0, 2, 2};
  EXPECT_TRUE(has(arranged(layout), ".layers has 2 before 2"));
}

TEST(KvLayout, EveryFieldThatMayNotBeZeroIsChecked) {
  const auto without = [](auto change) {
    KvLayout layout = llamaLayout();
    change(layout, layout.groups[0], layout.groups[0].caches[0]);
    return arranged(layout);
  };
  EXPECT_TRUE(has(without([](auto& l, auto&, auto&) { l.groups.clear(); }), "groups is empty"));
  EXPECT_TRUE(has(without([](auto& l, auto&, auto&) { l.tp = 0; }), "tp is 0"));
  EXPECT_TRUE(has(without([](auto& l, auto&, auto&) { l.page_align = 0; }), "page_align is 0"));
  EXPECT_TRUE(has(without([](auto&, auto& g, auto&) { g.caches.clear(); }), "[0].caches is empty"));
  EXPECT_TRUE(has(without([](auto&, auto& g, auto&) { g.block_tokens = 0; }), "tokens is 0"));
  EXPECT_TRUE(has(without([](auto&, auto&, auto& c) { c.layers.clear(); }), ".layers is empty"));
  EXPECT_TRUE(has(without([](auto&, auto&, auto& c) { c.kv_heads = 0; }), "kv_heads is 0"));
  EXPECT_TRUE(has(without([](auto&, auto&, auto& c) { c.head_size = 0; }), "head_size is 0"));
  EXPECT_TRUE(has(without([](auto&, auto&, auto& c) { c.element_bytes = 0; }), "_bytes is 0"));
  EXPECT_TRUE(has(without([](auto&, auto&, auto& c) { c.entry_tokens = 0; }), "_tokens is 0"));
  EXPECT_TRUE(has(without([](auto&, auto& g, auto& c) {
                    g.block_tokens = c.head_size = c.element_bytes = 1U << 31U;
                  }),
                  "more than 2^40 bytes"));
}

TEST(KvLayout, PlacesAreChecked) {
  KvLayout layout = *arrangeKv(llamaLayout(), KvArrangement::kApart, 0x1000, 10);
  EXPECT_EQ(refused(layout), "accepted");
  KvLayout wrong = layout;
  wrong.groups[0].places.pop_back();
  EXPECT_TRUE(has(refused(wrong), "groups[0].places has 63 entries"));
  EXPECT_TRUE(has(refused(wrong), "one for each cache, layer and tensor: 64"));
  wrong = layout;
  wrong.groups[0].places[5].stride = 100;
  EXPECT_TRUE(has(refused(wrong), "places[5].stride is 100, less than a page"));
  EXPECT_TRUE(has(refused(wrong), "the least is 32768"));
  wrong = layout;
  wrong.groups[0].places[1].address += 32768 - 1;
  EXPECT_TRUE(has(refused(wrong), "overlaps")) << refused(wrong);
  EXPECT_TRUE(has(refused(arrangeKv(llamaLayout(), KvArrangement::kRows, 0, 0)), "blocks is 0"));
  EXPECT_TRUE(
      has(refused(arrangeKv(llamaLayout(), KvArrangement::kRows, 1ULL << 63U, 1)), "beyond 2^63"));
}

}  // namespace
}  // namespace viaduct::kv
