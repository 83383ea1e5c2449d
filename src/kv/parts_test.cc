#include <gtest/gtest.h>
#include <viaduct/kv_parts.h>

#include <algorithm>
#include <array>
#include <cstddef>
#include <numeric>
#include <random>
#include <string>
#include <utility>
#include <vector>

#include "kv/kv_testing.h"
#include "support/text.h"

namespace viaduct::kv {
namespace {

using testing::has;
constexpr std::size_t kMemory = 1U << 15U;
using Bytes = std::vector<std::uint8_t>;  // a memory that begins at address 0

std::vector<Extent> extentsOf(const Selection& selection) {
  std::vector<Extent> out;
  const auto& [blocks, indices] = selection;
  for (std::uint64_t i = 0; i < (indices.empty() ? blocks.count() : indices.size()); ++i)
    out.push_back(blocks[indices.empty() ? i : indices[i]]);
  return out;
}

Bytes gather(const Bytes& memory, const Selection& from) {
  Bytes out;
  for (const auto& [address, bytes] : extentsOf(from))
    for (std::uint64_t i = 0; i < bytes; ++i) out.push_back(memory.at(address + i));
  return out;
}

void scatter(const Bytes& bytes, const Selection& into, Bytes& memory) {
  std::size_t next = 0;
  for (const auto& [address, length] : extentsOf(into))
    for (std::uint64_t i = 0; i < length; ++i) memory.at(address + i) = bytes.at(next++);
  EXPECT_EQ(next, bytes.size());
}

// One end of a request of 64 tokens.
struct Shape {
  std::uint32_t tp = 1, block_tokens = 16;
  KvOrder order = KvOrder::kHnd;
  KvArrangement arrangement = KvArrangement::kApart;
};

// Layers 1 and 3 have a window, and layer 3 has a latent row beside K and V.
KvLayout hybrid(const Shape& shape, std::uint32_t rank = 0) {
  const KvLayout layout{
      .groups = {{.caches = {{.name = "full", .layers = {0, 2}, .kv_heads = 4, .head_size = 2}},
                  .block_tokens = shape.block_tokens},
                 {.caches = {{.name = "near", .layers = {1, 3}, .kv_heads = 4, .head_size = 2},
                             {.name = "row", .layers = {3}, .tensors = 1, .head_size = 5}},
                  .block_tokens = shape.block_tokens,
                  .window = 32}},
      .order = shape.order,
      .tp = shape.tp,
      .rank = rank,
      .page_align = 8};
  return *arrangeKv(layout, shape.arrangement, 64, 128 / shape.block_tokens);
}

// Blocks of these tokens, anywhere in one half of the pool: groups that share rows take different
// halves.
Indices someBlocks(const Shape& shape, std::uint32_t tokens, std::mt19937& random, bool second) {
  const std::uint32_t pool = 128 / shape.block_tokens;
  Indices out(pool / 2);
  std::iota(out.begin(), out.end(), second ? pool / 2 : 0);
  std::shuffle(out.begin(), out.end(), random);
  out.resize(tokens / shape.block_tokens);
  return out;
}

Indices upTo(std::size_t count) {
  Indices out(count);
  std::iota(out.begin(), out.end(), 0U);
  return out;
}

// The request moves from all ranks of the source, as parts and by KvReshard.
void expectSameBytes(const Shape& from, const Shape& to) {
  std::mt19937 random(7);
  const KvLayout destination = hybrid(to);
  const std::array tables{someBlocks(from, 64, random, false), someBlocks(from, 64, random, true)};
  const std::array here{someBlocks(to, 64, random, false), someBlocks(to, 64, random, true)};
  Bytes as_parts(kMemory), directly(as_parts.size());
  const auto ranks = kvSourceRanks(hybrid(from), destination);
  for (const std::uint32_t rank : *ranks) {
    const KvLayout source = hybrid(from, rank);
    Bytes memory(kMemory);
    for (std::uint8_t& byte : memory) byte = static_cast<std::uint8_t>(random());
    const auto layers = KvLayers::plan(source, destination);
    ASSERT_TRUE(layers) << layers.error().text();
    std::vector<KvBlocks> in_part, in_pool;
    for (std::size_t i = 0; i < tables.size(); ++i) {
      in_part.push_back({.source = upTo(tables[i].size()), .destination = here[i]});
      in_pool.push_back({.source = tables[i], .destination = here[i]});
    }
    const auto pages = kvPages(source, tables);
    const auto into = layers->into(in_part);
    ASSERT_TRUE(pages && into);
    for (const PartInto& part : *into) {
      EXPECT_EQ(part.part.rank, rank);
      const auto page = std::ranges::find(*pages, part.part, &PublishedPart::part);
      ASSERT_NE(page, pages->end());
      const Bytes part_bytes = gather(memory, page->blocks);
      scatter(gather(part_bytes, {part.slice, {}}), part.into, as_parts);
    }
    const auto taken = KvReshard::plan(source, destination)->select(in_pool);
    ASSERT_TRUE(taken) << taken.error().text();
    scatter(gather(memory, taken->source), taken->destination, directly);
  }
  EXPECT_EQ(as_parts, directly);
  EXPECT_NE(as_parts, Bytes(as_parts.size()));
}

TEST(KvParts, MoveTheBytesOfAReshard) {
  const std::array shapes{
      Shape{}, Shape{.order = KvOrder::kNhd},
      Shape{.tp = 2, .block_tokens = 32, .arrangement = KvArrangement::kTogether},
      Shape{.tp = 4, .block_tokens = 8, .arrangement = KvArrangement::kRows},
      Shape{.tp = 8, .order = KvOrder::kNhd, .arrangement = KvArrangement::kRows}};
  for (std::size_t i = 0; i < shapes.size(); ++i)
    for (std::size_t j = 0; j < shapes.size(); ++j) {
      SCOPED_TRACE(std::to_string(i) + " to " + std::to_string(j));
      expectSameBytes(shapes[i], shapes[j]);
    }
}

TEST(KvParts, AreTheLayersOfARank) {
  KvLayout layout = layoutOf(llama(), 16);
  layout.tp = 4;
  layout.rank = 2;
  const auto parts = kvParts(layout);
  ASSERT_TRUE(parts) << parts.error().text();
  ASSERT_EQ(parts->size(), 32U);
  EXPECT_EQ(parts->front(), (ParcelPart{.rank = 2, .component = 0}));
  EXPECT_EQ(parts->back(), (ParcelPart{.rank = 2, .component = 31}));
}

TEST(KvParts, ALayerHasAPartInEachOfItsGroups) {
  const KvLayout layout{.groups = {{.caches = {{.layers = {0, 1}, .head_size = 8}}},
                                   {.caches = {{.layers = {1, 2}, .head_size = 8}}}}};
  const auto parts = kvParts(layout);
  ASSERT_TRUE(parts) << parts.error().text();
  EXPECT_EQ(*parts, (std::vector<ParcelPart>{{0, 0}, {0, 1}, {0, 1 + kMaxKvLayers}, {0, 2}}));
}

TEST(KvParts, PagesSideBySideAreOneBlock) {
  const KvLayout layout = layoutOf({.layers = {0, 1}, .head_size = 64}, 16);
  constexpr std::uint64_t kPage = 16 * 64 * 2;
  const std::array<Indices, 1> table{{{5, 2}}};
  const auto second = [&](KvArrangement arrangement) {
    return extentsOf(kvPages(*arrangeKv(layout, arrangement, 0, 8), table)->at(1).blocks);
  };
  EXPECT_EQ(second(KvArrangement::kTogether),
            (std::vector<Extent>{{26 * kPage, 2 * kPage}, {20 * kPage, 2 * kPage}}));
  EXPECT_EQ(second(KvArrangement::kRows),
            (std::vector<Extent>{{22 * kPage, 2 * kPage}, {10 * kPage, 2 * kPage}}));
  EXPECT_EQ(
      second(KvArrangement::kApart),
      (std::vector<Extent>{
          {21 * kPage, kPage}, {29 * kPage, kPage}, {18 * kPage, kPage}, {26 * kPage, kPage}}));
}

TEST(KvParts, APrefixThatIsHereIsNotTaken) {
  const auto at = [](std::uint64_t address) {
    return *arrangeKv(layoutOf({.layers = {0, 1}, .head_size = 64}, 16), KvArrangement::kTogether,
                      address, 8);
  };
  const auto layers = KvLayers::plan(at(0), at(0));
  const std::array rest{KvBlocks{.source = {2, 3}, .destination = {6, 1}, .first_token = 32}};
  const auto into = layers->into(rest);
  ASSERT_TRUE(into) << into.error().text();
  constexpr std::uint64_t kBlock = 2 * 16 * 64 * 2;
  for (const PartInto& part : *into) {
    EXPECT_EQ(part.slice.bytes(), 2 * kBlock);
    EXPECT_EQ(part.slice[0].address, 2 * kBlock);
  }
  const std::array none{KvBlocks{}};
  EXPECT_TRUE(layers->into(none)->empty());
}

TEST(KvParts, OnlyTheLayersOfBothEndsMove) {
  const auto stage = [](std::vector<std::uint32_t> layers) {
    return *arrangeKv(layoutOf({.layers = std::move(layers), .head_size = 64}, 16),
                      KvArrangement::kApart, 0, 8);
  };
  const auto layers = KvLayers::plan(stage({0, 1, 2}), stage({2, 3}));
  ASSERT_TRUE(layers) << layers.error().text();
  EXPECT_EQ(layers->parts(), (std::vector<ParcelPart>{{0, 2}}));
  const auto none = KvLayers::plan(stage({0, 1}), stage({2, 3}));
  ASSERT_FALSE(none);
  EXPECT_TRUE(has(none.error().text(), "no layer in common")) << none.error().text();
}

TEST(KvParts, ImpossibleRequestsAreRefused) {
  const KvLayout layout =
      *arrangeKv(layoutOf({.layers = {0}, .head_size = 64}, 16), KvArrangement::kApart, 0, 8);
  const auto pages = [&](std::vector<Indices> blocks) {
    const auto out = kvPages(layout, blocks);
    return out ? "no error" : out.error().text();
  };
  EXPECT_TRUE(has(pages({{0, 8}}), "groups[0] has block 8, out of range")) << pages({{0, 8}});
  EXPECT_TRUE(has(pages({{}}), "groups[0] has no blocks"));
  EXPECT_TRUE(has(pages({}), "blocks of 0 groups are given, and the layout has 1"));
  EXPECT_EQ(kvParts(layoutOf({.layers = {kMaxKvLayers}, .head_size = 64}, 16)).error().code,
            Code::kInvalid);
  const auto layers = KvLayers::plan(layout, layout);
  const auto into = [&](std::vector<KvBlocks> blocks) {
    const auto out = layers->into(blocks);
    return out ? "no error" : out.error().text();
  };
  // The destination has no room for the third block.
  const auto little = into({{.source = {0, 1, 2}, .destination = {4, 5}}});
  EXPECT_TRUE(has(little, "3 source blocks of 16 tokens and 2 destination blocks")) << little;
  EXPECT_TRUE(has(into({}), "blocks of 0 groups"));
}

TEST(KvParts, AnErrorNamesItsGroup) {
  const KvLayout layout = hybrid({});
  const auto layers = KvLayers::plan(layout, layout);
  const std::vector<KvBlocks> blocks{{.source = {0}, .destination = {1}},
                                     {.source = {0, 1}, .destination = {2}}};
  const auto out = layers->into(blocks);
  ASSERT_FALSE(out);
  EXPECT_TRUE(has(out.error().text(), "groups[1] names 2 source blocks")) << out.error().text();
}

}  // namespace
}  // namespace viaduct::kv
