#include <gtest/gtest.h>
#include <viaduct/kv_models.h>

#include <algorithm>

#include "support/text.h"

namespace viaduct::kv {
namespace {

using testing::has;

// The amounts of a request on one rank: bytes with padding, and whole blocks and pages.
struct Total {
  std::uint64_t bytes = 0, blocks = 0, pages = 0;
  friend bool operator==(const Total&, const Total&) = default;
};
Total totalOf(const KvLayout& layout, std::uint64_t tokens) {
  Total out;
  for (const KvGroup& group : layout.groups) {
    const std::uint64_t blocks = kvBlocksOf(group, tokens);
    out.blocks += blocks;
    for (const KvCache& cache : group.caches) {
      const std::uint64_t pages = blocks * cache.layers.size() * cache.tensors;
      out.pages += pages;
      out.bytes += pages * kvPageBytes(layout, group, cache);
    }
  }
  return out;
}
Total totalOf(const char* model, std::uint64_t tokens) {
  const auto found = kvModel(model);
  EXPECT_TRUE(found) << found.error().text();
  return found ? totalOf(found->layout, tokens) : Total{};
}

TEST(KvModels, BytesOfOneBlockAreThoseOfTheModelsConfigurations) {
  const auto token = [](const char* model) { return totalOf(model, 16).bytes / 16; };
  EXPECT_EQ(token("Llama-3.1-8B"), 131'072U);
  EXPECT_EQ(token("Llama-3.1-70B"), 327'680U);
  EXPECT_EQ(token("Llama-3.1-405B"), 516'096U);
  EXPECT_EQ(token("Qwen3-8B"), 147'456U);
  EXPECT_EQ(token("Qwen3-32B"), 262'144U);
  EXPECT_EQ(token("Qwen3-30B-A3B"), 98'304U);
  EXPECT_EQ(token("Qwen3-235B-A22B"), 192'512U);
  EXPECT_EQ(token("gpt-oss-20b"), 49'152U);
  EXPECT_EQ(token("gpt-oss-120b"), 73'728U);
  EXPECT_EQ(token("DeepSeek-V3"), 70'272U);
  EXPECT_EQ(token("DeepSeek-R1"), 70'272U);
  EXPECT_EQ(token("DeepSeek-V3.2"), 40'016U + 61 * 132);
}

TEST(KvModels, PagesOfARequest) {
  EXPECT_EQ(totalOf("Llama-3.1-8B", 8192), (Total{1ULL << 30U, 512, 32'768}));
  EXPECT_EQ(totalOf("Llama-3.1-405B", 8192).pages, 129'024U);
  EXPECT_EQ(totalOf("DeepSeek-V3", 8192).pages, 31'232U);
}

TEST(KvModels, AWindowLimitsTheBlocks) {
  // Twelve layers keep all tokens. The other twelve keep a window of 128 tokens, and one more
  // block.
  const Total request = totalOf("gpt-oss-20b", 8192);
  EXPECT_EQ(request.blocks, 512U + 9);
  EXPECT_EQ(request.bytes, (192U << 20U) + 9 * 16 * 24'576);
  EXPECT_EQ(totalOf("gpt-oss-20b", 32).blocks, 4U);
}

TEST(KvModels, CompressedStatesShareRows) {
  const KvLayout layout = kvModel("DeepSeek-V4-Pro")->layout;
  EXPECT_EQ(totalOf(layout, 8192), (Total{73'837'440, 58, 3802}));
  EXPECT_EQ(totalOf(layout, 131'072).blocks, 538U);
  EXPECT_EQ(totalOf(layout, 524'288).pages, 187'258U);
  const auto rows = arrangeKv(layout, KvArrangement::kRows, 0, 10);
  ASSERT_TRUE(rows) << rows.error().text();
  EXPECT_EQ(rows->groups[4].places[0].stride, 1'435'968U);
}

// Each block of a group is one descriptor, because its pages touch on both sides.
TEST(KvModels, ARequestInRowsIsOnePieceForEachBlock) {
  const KvLayout rows =
      *arrangeKv(kvModel("DeepSeek-V4-Pro")->layout, KvArrangement::kRows, 0, 1000);
  std::vector<KvBlocks> taken;
  std::uint32_t next = 0;
  for (const KvGroup& group : rows.groups) {
    KvBlocks& blocks = taken.emplace_back();
    for (std::uint64_t i = kvBlocksOf(group, 8192); i > 0; --i) {
      blocks.source.push_back(999 - next);
      blocks.destination.push_back(next++);
    }
  }
  const auto selected = KvReshard::plan(rows, rows)->select(taken);
  ASSERT_TRUE(selected) << selected.error().text();
  EXPECT_EQ(selected->source.blocks.count(), 58U);
  EXPECT_EQ(selected->source.blocks.bytes(), 73'837'440U);
}

TEST(KvModels, EveryModelHasAPossibleLayout) {
  for (const std::string& name : kvModelNames()) {
    const auto made = arrangeKv(kvModel(name)->layout, KvArrangement::kApart, 0, 10);
    EXPECT_TRUE(made) << name << ": " << made.error().text();
  }
}

TEST(KvModels, NamesAreFoundInEitherCaseAndWithAnOwner) {
  EXPECT_EQ(kvModel("meta-llama/LLAMA-3.1-8b")->name, "Llama-3.1-8B");
  EXPECT_TRUE(has(kvModel("Llama-3.2-8B").error().text(), "did you mean Llama-3.1-8B?"));
  EXPECT_TRUE(has(kvModel("BERT").error().text(), "the models are Llama-3.1-8B, "));
}

}  // namespace
}  // namespace viaduct::kv
