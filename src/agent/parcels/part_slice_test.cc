#include "agent/parcels/part_slice.h"

#include <gtest/gtest.h>

#include <random>
#include <vector>

namespace viaduct::agent {
namespace {

// The address of each byte, in order.
std::vector<std::uint64_t> bytesOf(const Blocks& blocks) {
  std::vector<std::uint64_t> out;
  for (std::uint64_t i = 0; i < blocks.count(); ++i)
    for (std::uint64_t at = 0; at < blocks[i].bytes; ++at) out.push_back(blocks[i].address + at);
  return out;
}

TEST(PartSlice, EachByteOfASliceIsThatByteOfThePart) {
  std::mt19937_64 random(5);
  for (int round = 0; round < 300; ++round) {
    std::vector<Extent> extents;
    std::uint64_t address = 1000;
    for (std::uint64_t i = 0; i < 1 + random() % 6; ++i) {
      extents.push_back({address, 1 + random() % 20});
      address += 20 + random() % 9;
    }
    const Blocks part = *Blocks::list(extents);
    std::vector<Extent> wanted;
    for (std::uint64_t at = random() % 4; at < part.bytes(); at += random() % 9) {
      const std::uint64_t bytes = std::min(1 + random() % 30, part.bytes() - at);
      wanted.push_back({at, bytes});
      at += bytes;
    }
    if (wanted.empty()) continue;
    const Blocks slice = *Blocks::list(wanted);
    const auto taken = sliceOf(part, slice);
    ASSERT_TRUE(taken) << taken.error().text();
    const auto all = bytesOf(part);
    std::vector<std::uint64_t> expected;
    for (const std::uint64_t offset : bytesOf(slice)) expected.push_back(all[offset]);
    EXPECT_EQ(bytesOf(*taken), expected);
  }
}

TEST(PartSlice, ASliceBeyondThePartIsRefused) {
  const Blocks part = *Blocks::strided({.base = 4096, .stride = 64, .bytes = 16, .count = 4});
  for (const Extent& bad : {Extent{64, 1}, Extent{60, 5}, Extent{~std::uint64_t{0} / 4, 8}})
    EXPECT_FALSE(sliceOf(part, *Blocks::list(std::vector{bad}))) << bad.address;
  EXPECT_TRUE(sliceOf(part, *Blocks::list(std::vector{Extent{60, 4}})));
}

TEST(PartSlice, AFetchThatCannotBeIsRefusedWithItsReason) {
  const Selection memory{*Blocks::strided({.base = 4096, .stride = 0, .bytes = 64, .count = 4}),
                         {}};
  const PartInto first{.part = {.rank = 0, .component = 1}, .into = memory};
  PartInto second{.part = {.rank = 0, .component = 2}, .into = memory};
  second.into.indices = {1, 2};
  const auto refusal = [](const FetchOptions& options) {
    const Status checked = checkFetch("kv", options);
    return checked ? std::string() : checked.error().text();
  };
  EXPECT_EQ(refusal({.into = {first}}), "");
  EXPECT_NE(refusal({.into = {first, second}}).find("part 2 of rank 0"), std::string::npos);
  EXPECT_NE(refusal({.into = {first, first}}).find("taken twice"), std::string::npos);
  EXPECT_NE(refusal({}).find("no memory"), std::string::npos);
  EXPECT_NE(refusal({.group = {.size = 2}, .into = {first}}).find("no name"), std::string::npos);
  EXPECT_NE(refusal({.group = {.name = "g", .size = 2, .rank = 2}, .into = {first}}).find("rank 2"),
            std::string::npos);
  EXPECT_FALSE(checkFetch("", {.into = {first}}));
}

TEST(PartSlice, DigestsNeedTheSameBlocks) {
  const Blocks part = *Blocks::strided({.base = 4096, .stride = 0, .bytes = 64, .count = 4});
  const auto into = [](std::uint64_t bytes, std::uint64_t count) {
    return PartInto{
        .into = {*Blocks::strided({.base = 8192, .stride = 0, .bytes = bytes, .count = count}),
                 {}}};
  };
  const std::vector<Digest> digests(4);
  EXPECT_TRUE(copyOf(part, digests, into(64, 4)));
  EXPECT_FALSE(copyOf(part, digests, into(256, 1)));
  EXPECT_FALSE(copyOf(part, digests, into(128, 4)));
  EXPECT_FALSE(copyOf(part, std::vector<Digest>(3), into(64, 4)));
  EXPECT_TRUE(copyOf(part, {}, into(256, 1)));
}

TEST(PartSlice, OnlyBlocksWithOtherDigestsAreCopied) {
  const Blocks part = *Blocks::strided({.base = 4096, .stride = 0, .bytes = 64, .count = 4});
  PartInto into{.into = {*Blocks::strided({.base = 8192, .stride = 0, .bytes = 64, .count = 8}),
                         {7, 5, 3, 1}}};
  const std::vector<Digest> digests{{1, 1}, {2, 2}, {3, 3}, {4, 4}};
  into.have = {{1, 1}, {9, 9}, {3, 3}, {}};
  const auto copy = copyOf(part, digests, into);
  ASSERT_TRUE(copy) << copy.error().text();
  EXPECT_EQ(copy->digests, (std::vector<Digest>{{2, 2}, {4, 4}}));
  ASSERT_EQ(copy->there.indices, copy->here.indices);
  std::vector<std::uint64_t> from, to;
  for (const std::uint32_t i : copy->there.indices) {
    from.push_back(copy->there.blocks[i].address);
    to.push_back(copy->here.blocks[i].address);
  }
  EXPECT_EQ(from, (std::vector<std::uint64_t>{4096 + 64, 4096 + 3 * 64}));
  EXPECT_EQ(to, (std::vector<std::uint64_t>{8192 + 5 * 64, 8192 + 64}));
  into.have = digests;
  EXPECT_EQ(copyOf(part, digests, into)->there.blocks.count(), 0U);
  // Without digests of the publisher, nothing is left out.
  EXPECT_EQ(copyOf(part, {}, into)->there.blocks.count(), 4U);
  into.have.pop_back();
  EXPECT_FALSE(copyOf(part, digests, into));
  EXPECT_FALSE(checkFetch("kv", {.into = {into}}));
}

}  // namespace
}  // namespace viaduct::agent
