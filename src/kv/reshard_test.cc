#include <fmt/format.h>
#include <gtest/gtest.h>
#include <viaduct/kv.h>

#include <algorithm>
#include <array>
#include <functional>
#include <numeric>
#include <string>
#include <utility>
#include <vector>

#include "base/random.h"
#include "core/plan.h"
#include "kv/kv_testing.h"
#include "support/text.h"

namespace viaduct::kv {
namespace {

using testing::has;

// A byte of a KV cache, wherever it lies.
struct LogicalByte {
  std::uint32_t layer = 0, tensor = 0, head = 0, token = 0, byte = 0;
  // Different for each byte of a test, and never 0.
  std::uint32_t color() const {
    return (((layer * 2 + tensor) * 32 + head) * 512 + token) * 16 + byte + 1;
  }
};

// The blocks that a request has at one end, for tokens from `first` on.
struct Request {
  Indices ids = {};
  std::uint32_t first = 0, tokens = 0;
};

// The oracle: visits each byte of a rank's part of the request with its address, as docs/kv.md
// describes it. The layout has one group with one cache.
void forEachByte(const KvLayout& layout, const Request& request,
                 const std::function<void(const LogicalByte&, std::uint64_t)>& visit) {
  const KvGroup& group = layout.groups[0];
  const KvCache& cache = group.caches[0];
  const std::uint32_t local = std::max(1U, cache.kv_heads / layout.tp);
  const std::uint32_t first_head = layout.rank * cache.kv_heads / layout.tp;
  const std::uint32_t bytes = cache.head_size * cache.element_bytes;
  const std::uint32_t start = request.first / group.block_tokens;
  for (std::uint32_t i = 0; i < cache.layers.size(); ++i)
    for (std::uint32_t tensor = 0; tensor < cache.tensors; ++tensor)
      for (std::uint32_t head = 0; head < local; ++head)
        for (std::uint32_t token = request.first; token < request.first + request.tokens; ++token) {
          const KvPlace& place = group.places[i * cache.tensors + tensor];
          const std::uint32_t in_block = token % group.block_tokens;
          const std::uint32_t entry = layout.order == KvOrder::kNhd
                                          ? in_block * local + head
                                          : head * group.block_tokens + in_block;
          const std::uint64_t at = place.address + entry * bytes +
                                   request.ids[token / group.block_tokens - start] * place.stride;
          for (std::uint32_t byte = 0; byte < bytes; ++byte)
            visit({cache.layers[i], tensor, first_head + head, token, byte}, at + byte);
        }
}

// Different blocks of a pool: some follow one another, others do not.
Indices someBlocks(base::Random& random, std::uint64_t count, std::uint64_t pool) {
  Indices all(pool);
  std::iota(all.begin(), all.end(), 0U);
  for (std::size_t i = pool; i > 1; --i)
    if (random.chance(0.5)) std::swap(all[i - 1], all[random.below(i)]);
  all.resize(count);
  return all;
}

constexpr std::uint64_t kSourceBase = 1000, kDestinationBase = 1'000'000;

core::OpList opsOf(const KvSelections& taken) {
  const core::PinMap all({{.address = 0, .bytes = 1ULL << 63U, .slot = 0}});
  auto ops = core::coalesce(OpKind::kRead, taken.destination, taken.source, all, all);
  EXPECT_TRUE(ops) << ops.error().text();
  return ops ? *std::move(ops) : core::OpList{};
}

// The memory of one rank: a color for each byte.
class Memory {
 public:
  explicit Memory(const KvLayout& layout) : extent_(kvExtent(layout)), colors_(extent_.bytes) {}
  std::uint32_t& at(std::uint64_t address) { return colors_.at(address - extent_.address); }
  std::vector<std::uint32_t>& colors() { return colors_; }

 private:
  Extent extent_;
  std::vector<std::uint32_t> colors_;
};

class Resharding {
 public:
  Resharding(KvLayout source, KvLayout destination, std::uint32_t tokens, std::uint32_t first = 0)
      : source_(std::move(source)),
        destination_(std::move(destination)),
        from_(requestOf(source_, first, tokens)),
        to_(requestOf(destination_, first, tokens)) {}

  // Moves the request to each rank of the destination, and compares its memory with the oracle's.
  void expectMoved(KvArrangement from, KvArrangement to) {
    std::vector<Memory> sources;
    source_ = *arrangeKv(source_, from, kSourceBase, kPool);
    for (std::uint32_t rank = 0; rank < source_.tp; ++rank) {
      source_.rank = rank;
      sources.emplace_back(source_);
      forEachByte(source_, from_, [&](const LogicalByte& what, std::uint64_t address) {
        sources.back().at(address) = what.color();
      });
    }
    for (std::uint32_t rank = 0; rank < destination_.tp; ++rank) {
      destination_.rank = rank;
      destination_ = *arrangeKv(destination_, to, kDestinationBase, kPool);
      expectRank(sources);
    }
  }

 private:
  static constexpr std::uint64_t kPool = 20;

  Request requestOf(const KvLayout& layout, std::uint32_t first, std::uint32_t tokens) {
    const std::uint32_t each = layout.groups[0].block_tokens;
    const std::uint32_t blocks = (first + tokens + each - 1) / each - first / each;
    return {someBlocks(random_, blocks, kPool), first, tokens};
  }
  void expectRank(std::vector<Memory>& sources) {
    Memory memory(destination_);
    const auto ranks = kvSourceRanks(source_, destination_);
    ASSERT_TRUE(ranks) << ranks.error().text();
    for (const std::uint32_t rank : *ranks) copyFrom(rank, sources[rank], memory);
    Memory expected(destination_);
    forEachByte(destination_, to_, [&](const LogicalByte& what, std::uint64_t address) {
      expected.at(address) = what.color();
    });
    EXPECT_TRUE(memory.colors() == expected.colors()) << "rank " << destination_.rank;
  }
  void copyFrom(std::uint32_t rank, Memory& from, Memory& to) {
    source_.rank = rank;
    const auto reshard = KvReshard::plan(source_, destination_);
    ASSERT_TRUE(reshard) << reshard.error().text();
    const KvBlocks blocks{from_.ids, to_.ids, from_.first};
    const auto taken = reshard->select({&blocks, 1});
    ASSERT_TRUE(taken) << taken.error().text();
    for (const core::Op& op : opsOf(*taken).ops)
      for (std::uint64_t i = 0; i < op.bytes; ++i) {
        std::uint32_t& byte = to.at(op.local + i);
        ASSERT_EQ(byte, 0U) << "written twice";
        byte = from.at(op.remote + i);
      }
  }

  base::Random random_{7};
  KvLayout source_, destination_;
  Request from_, to_;
};

KvCache small(std::uint32_t heads, std::uint32_t tensors) {
  return {
      .layers = {0, 1}, .tensors = tensors, .kv_heads = heads, .head_size = 3, .element_bytes = 1};
}

constexpr std::array kOrders{KvOrder::kNhd, KvOrder::kHnd};

// All pairs of up to 16 ranks for one pair of block sizes, in tokens.
void expectAllRanks(const KvCache& cache, std::uint32_t from_tokens, std::uint32_t to_tokens,
                    KvOrder from_order, KvOrder to_order) {
  KvLayout source = layoutOf(cache, from_tokens, from_order);
  KvLayout destination = layoutOf(cache, to_tokens, to_order);
  for (source.tp = 1; source.tp <= 16; ++source.tp)
    for (destination.tp = 1; destination.tp <= 16; ++destination.tp) {
      const auto possible = [&](std::uint32_t tp) {
        return cache.kv_heads % tp == 0 || tp % cache.kv_heads == 0;
      };
      SCOPED_TRACE(fmt::format("{} heads, tp {} to {}, blocks of {} to {} tokens, orders {} to {}",
                               cache.kv_heads, source.tp, destination.tp, from_tokens, to_tokens,
                               static_cast<int>(from_order), static_cast<int>(to_order)));
      ASSERT_EQ(kvSourceRanks(source, destination).has_value(),
                possible(source.tp) && possible(destination.tp));
      if (!possible(source.tp) || !possible(destination.tp)) continue;
      Resharding(source, destination, 12)
          .expectMoved(KvArrangement::kApart, KvArrangement::kTogether);
      if (::testing::Test::HasFailure()) return;
    }
}

void expectAllPairs(const KvCache& cache) {
  const std::vector<std::pair<std::uint32_t, std::uint32_t>> sizes{{4, 4}, {2, 6}, {6, 2}, {4, 6}};
  for (const auto& [from_tokens, to_tokens] : sizes)
    for (const KvOrder from : kOrders)
      for (const KvOrder to : kOrders) expectAllRanks(cache, from_tokens, to_tokens, from, to);
}

TEST(KvReshardOracle, EightHeads) { expectAllPairs(small(8, 2)); }
TEST(KvReshardOracle, TwelveHeads) { expectAllPairs(small(12, 2)); }
TEST(KvReshardOracle, FewerHeadsThanRanks) { expectAllPairs(small(2, 2)); }
TEST(KvReshardOracle, ALatentRowIsTheSameOnEachRank) {
  for (const auto& [from, to] : {std::pair{4U, 4U}, {2U, 6U}, {6U, 2U}})
    expectAllRanks(small(1, 1), from, to, KvOrder::kNhd, KvOrder::kHnd);
}

TEST(KvReshardOracle, AllArrangements) {
  constexpr std::array kAll{KvArrangement::kApart, KvArrangement::kTogether, KvArrangement::kRows};
  constexpr std::uint32_t kPartlyFilled = 30;  // the last blocks of both ends
  for (const std::uint32_t tokens : {4U, 12U})
    for (const KvArrangement from : kAll)
      for (const KvArrangement to : kAll)
        for (const KvOrder order : kOrders)
          Resharding(layoutOf(small(4, 2), 4, order), layoutOf(small(4, 2), tokens, order),
                     kPartlyFilled)
              .expectMoved(from, to);
}

TEST(KvReshardOracle, TokensAfterACachedPrefix) {
  for (const KvOrder order : kOrders) {
    KvLayout source = layoutOf(small(4, 2), 4, order);
    KvLayout destination = layoutOf(small(4, 2), 12, order);
    destination.tp = 2;
    // Tokens 8 to 23 begin inside the first block of the destination; then both ends change roles.
    Resharding(source, destination, 16, 8).expectMoved(KvArrangement::kRows, KvArrangement::kApart);
    Resharding(destination, source, 16, 8).expectMoved(KvArrangement::kApart, KvArrangement::kRows);
  }
}

TEST(KvReshardOracle, LayersOfOnePipelineStage) {
  KvCache two = small(4, 2);
  two.layers = {1, 2};
  KvLayout source = *arrangeKv(layoutOf(small(4, 2), 4), KvArrangement::kApart, 0, 10);
  KvLayout destination = *arrangeKv(layoutOf(two, 4), KvArrangement::kApart, 5000, 10);
  const auto reshard = KvReshard::plan(source, destination);
  ASSERT_TRUE(reshard) << reshard.error().text();
  const KvBlocks one{{3}, {0}};
  // Layer 1 is the second one of the source. A page has 48 bytes.
  EXPECT_EQ(opsOf(*reshard->select({&one, 1})).ops,
            (std::vector<core::Op>{{5000, 960 + 3 * 48, 48, 0, 0},
                                   {5000 + 480, 960 + 480 + 3 * 48, 48, 0, 0}}));
}

// The error of a plan between two layouts, or of a selection of blocks with a plan.
std::string whyNot(const KvLayout& source, const KvLayout& destination) {
  const auto made = KvReshard::plan(source, destination);
  return made ? "planned" : made.error().text();
}
std::string whyNot(const KvReshard& reshard, const KvBlocks& blocks) {
  const auto made = reshard.select({&blocks, 1});
  return made ? "selected" : made.error().text();
}
KvLayout placed(KvLayout layout, std::uint64_t blocks = 1000,
                KvArrangement how = KvArrangement::kApart) {
  auto made = arrangeKv(std::move(layout), how, 1ULL << 40U, blocks);
  EXPECT_TRUE(made) << made.error().text();
  return *made;
}
Indices counting(std::uint32_t count, std::uint32_t first = 0) { return layersUpTo(count, first); }

TEST(KvReshard, NeighbouringBlocksStayRuns) {
  constexpr std::uint32_t kMillion = 1'000'000;
  const KvLayout layout = placed(layoutOf(llama(), 16), 2 * kMillion);
  const KvBlocks blocks{counting(kMillion), counting(kMillion, kMillion)};
  const auto taken = KvReshard::plan(layout, layout)->select({&blocks, 1});
  ASSERT_TRUE(taken) << taken.error().text();
  EXPECT_EQ(taken->source.blocks.runs(), 64U);
  EXPECT_EQ(taken->destination.blocks.runs(), 64U);
  EXPECT_EQ(taken->source.blocks.count(), 64U * kMillion);
  EXPECT_EQ(opsOf(*taken).ops.size(), 64U);
}

TEST(KvReshard, ScatteredBlocksAreOnePieceForEachPage) {
  const KvLayout layout = placed(layoutOf(llama(), 16));
  const KvBlocks blocks{{9, 7, 5, 3}, {1, 3, 5, 7}};
  const auto taken = KvReshard::plan(layout, layout)->select({&blocks, 1});
  EXPECT_EQ(taken->source.blocks.count(), 64U * 4);
  EXPECT_EQ(taken->source.blocks[5].address, layout.groups[0].places[1].address + 7 * 32768);
  EXPECT_EQ(opsOf(*taken).ops.size(), 64U * 4);
}

TEST(KvReshard, LargerBlocksOfFewerHeadsTakeOnePieceForEachBlockOfTheSource) {
  KvLayout source = layoutOf(llama(), 16, KvOrder::kHnd);
  KvLayout destination = layoutOf(llama(), 64, KvOrder::kHnd);
  source.tp = 4;
  destination.tp = 8;
  const KvBlocks blocks{counting(512), counting(128)};
  const auto taken = KvReshard::plan(placed(source), placed(destination))->select({&blocks, 1});
  ASSERT_TRUE(taken) << taken.error().text();
  EXPECT_EQ(taken->source.blocks.count(), 64U * 512);
  EXPECT_EQ(taken->source.blocks.blockBytes(), 4096U);
  EXPECT_EQ(taken->source.blocks.runs(), 64U);
  EXPECT_EQ(taken->destination.blocks.runs(), 64U);
}

TEST(KvReshard, EqualRowsAreOnePieceEach) {
  const KvLayout layout = placed(layoutOf(llama(), 16), 100, KvArrangement::kRows);
  const KvBlocks blocks{{9, 7}, {1, 3}};
  EXPECT_EQ(opsOf(*KvReshard::plan(layout, layout)->select({&blocks, 1})).ops,
            (std::vector<core::Op>{
                {(1ULL << 40U) + (2U << 20U), (1ULL << 40U) + (18U << 20U), 2U << 20U, 0, 0},
                {(1ULL << 40U) + (6U << 20U), (1ULL << 40U) + (14U << 20U), 2U << 20U, 0, 0}}));
}

TEST(KvReshard, StridesAreAtLeastTheSizeOfAPiece) {
  const KvLayout layout = placed(layoutOf(llama(), 16), 1);
  const KvBlocks one{{0}, {0}};
  const auto taken = KvReshard::plan(layout, layout)->select({&one, 1});
  for (std::size_t i = 0; i < taken->source.blocks.runs(); ++i)
    EXPECT_GE(taken->source.blocks.run(i).stride, taken->source.blocks.run(i).bytes);
}

TEST(KvReshard, RanksWithCopiesOfAHeadTakeItFromDifferentRanks) {
  KvLayout source = layoutOf(small(1, 1), 16), destination = source;
  source.tp = 4;
  destination.tp = 8;
  std::vector<std::uint32_t> ranks;
  for (; destination.rank < 8; ++destination.rank) {
    const auto from = kvSourceRanks(source, destination);
    ASSERT_TRUE(from && from->size() == 1);
    ranks.push_back(from->front());
  }
  EXPECT_EQ(ranks, (std::vector<std::uint32_t>{0, 0, 1, 1, 2, 2, 3, 3}));
}

TEST(KvReshard, AnErrorSaysWhyLayoutsDoNotMap) {
  const KvLayout layout = placed(layoutOf(llama(), 16));
  const auto other = [&](auto change) {
    KvLayout destination = layoutOf(llama(), 16);
    change(destination, destination.groups[0].caches[0]);
    return whyNot(layout, placed(destination));
  };
  EXPECT_TRUE(has(other([](auto&, auto& c) { c.element_bytes = 1; }),
                  "groups[0].caches[0] (\"kv\").element_bytes is 2 in the source and 1 in the "
                  "destination; what to do: a copy converts no elements"));
  EXPECT_TRUE(has(other([](auto&, auto& c) { c.kv_heads = 4; }), "kv_heads is 8 in the source"));
  EXPECT_TRUE(has(other([](auto&, auto& c) { c.head_size = 64; }), "head_size is 128"));
  EXPECT_TRUE(has(other([](auto&, auto& c) { c.tensors = 1; }), "tensors is 2"));
  EXPECT_TRUE(has(other([](auto&, auto& c) { c.entry_tokens = 4; }), "entry_tokens is 1"));
  EXPECT_TRUE(has(other([](auto&, auto& c) { c.name = "latent"; }), "is \"kv\" in the source"));
  EXPECT_TRUE(has(other([](auto&, auto& c) { c.layers = {40}; }), "no layer in common"));
  EXPECT_TRUE(has(other([](auto& l, auto&) { l.groups.push_back(l.groups[0]); }),
                  "the source has 1 groups and the destination 2"));
  KvLayout wrong = layout;
  wrong.groups[0].places.clear();
  EXPECT_TRUE(has(whyNot(layout, wrong), "destination groups[0].places has 0 entries"));
  EXPECT_TRUE(has(whyNot(wrong, layout), "source groups[0].places"));
}

TEST(KvReshard, ARankThatGivesNothingIsRefused) {
  KvLayout source = layoutOf(llama(), 16), destination = source;
  source.tp = 4;
  source.rank = 3;
  destination.tp = 2;
  const std::string text = whyNot(placed(source), placed(destination));
  EXPECT_TRUE(has(text, "rank 0 of 2 takes nothing from rank 3 of 4")) << text;
  EXPECT_TRUE(has(text, "its heads come from rank 0, 1")) << text;
}

TEST(KvReshard, BlocksThatCannotBeAreRefused) {
  const auto reshard =
      *KvReshard::plan(placed(layoutOf(llama(), 16)), placed(layoutOf(llama(), 64)));
  EXPECT_EQ(whyNot(reshard, {counting(5), counting(2)}), "selected");
  EXPECT_EQ(whyNot(reshard, {{}, {}}), "selected");
  EXPECT_TRUE(has(whyNot(reshard, {counting(5), counting(1)}), "5 source blocks of 16 tokens"));
  EXPECT_TRUE(has(whyNot(reshard, {counting(5), counting(3)}), "3 destination blocks of 64"));
  EXPECT_TRUE(has(whyNot(reshard, {counting(5), {}}), "the same tokens at both ends"));
  EXPECT_TRUE(has(whyNot(reshard, {{1000}, {0}}), "groups[0].source[0] is 1000, out of range"));
  EXPECT_TRUE(has(whyNot(reshard, {{1, 1}, {0}}), "groups[0].source names block 1 twice"));
  EXPECT_TRUE(has(whyNot(reshard, {counting(5), {4, 4}}), "destination names block 4 twice"));
  EXPECT_EQ(whyNot(reshard, {counting(3), {0}, 16}), "selected");
  EXPECT_TRUE(has(whyNot(reshard, {{1}, {0}, 70}), "first_token is 70, inside a block"));
  EXPECT_TRUE(has(whyNot(reshard, {{1}, {0}, 70}), "the nearest one is 64"));
  EXPECT_FALSE(KvReshard().select({}));
  EXPECT_FALSE(reshard.select({}));
}

}  // namespace
}  // namespace viaduct::kv
