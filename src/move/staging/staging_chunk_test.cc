// Tests how ops are cut into chunks.
#include "move/staging/staging_chunk.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <random>
#include <vector>

#include "move/staging/staging_message.h"

namespace viaduct::move {
namespace {

constexpr std::uint64_t kChunk = 64 << 10;

std::vector<ChunkPlan> cut(const std::vector<core::Op>& ops, OpEnd align) {
  std::vector<ChunkPlan> plans;
  for (OpCursor at; at.op < ops.size();) plans.push_back(fillChunk(ops, at, kChunk, align));
  return plans;
}

core::Op op(std::uint64_t local, std::uint64_t remote, std::uint64_t bytes) {
  return {.local = local, .remote = remote, .bytes = bytes, .local_pin = 3, .remote_pin = 7};
}

TEST(FillChunk, PutsSmallOpsTogether) {
  const auto plans = cut({op(0x1000, 0x9000, 4096), op(0x5000, 0x1000, 4096)}, OpEnd::kLocal);
  ASSERT_EQ(plans.size(), 1U);
  ASSERT_EQ(plans[0].pieces.size(), 2U);
  EXPECT_EQ(plans[0].bytes, 8192U);
  EXPECT_EQ(plans[0].used, 8192U);
}

TEST(FillChunk, CutsAnOpThatIsLargerThanAChunk) {
  const auto plans = cut({op(0, 0x10000, 3 * kChunk)}, OpEnd::kLocal);
  ASSERT_EQ(plans.size(), 3U);
  for (const ChunkPlan& plan : plans) EXPECT_EQ(plan.bytes, kChunk);
}

TEST(FillChunk, DoesNotCutABlockThatFitsIntoTheNextChunk) {
  const auto plans = cut({op(0, 0, 40 << 10), op(1 << 20, 1 << 20, 40 << 10)}, OpEnd::kLocal);
  ASSERT_EQ(plans.size(), 2U);
  EXPECT_EQ(plans[0].bytes, 40U << 10U);
}

TEST(FillChunk, LimitsTheNumberOfPieces) {
  std::vector<core::Op> ops;
  for (std::uint64_t i = 0; i < kMostPieces + 1; ++i) ops.push_back(op(i * 16, i * 32, 16));
  EXPECT_EQ(cut(ops, OpEnd::kLocal)[0].pieces.size(), kMostPieces);
}

TEST(PackPieces, LeavesNoGapsAndLimitsThePieces) {
  std::vector<core::Op> ops;
  for (std::uint64_t i = 0; i < kMostPieces + 1; ++i) ops.push_back(op(i * 16, i * 32, 10));
  ops.push_back(op(1 << 20, 1 << 21, 3 * kChunk));
  std::uint64_t bytes = 0;
  for (OpCursor at; at.op < ops.size();) {
    const ChunkPlan plan = packPieces(ops, at, kChunk);
    EXPECT_LE(plan.pieces.size(), kMostPieces);
    EXPECT_LE(plan.used, kChunk);
    EXPECT_EQ(plan.used, plan.bytes);
    std::uint64_t place = 0;
    for (const ChunkPiece& piece : plan.pieces) {
      EXPECT_EQ(piece.place, place);
      place += piece.op.bytes;
    }
    bytes += plan.bytes;
  }
  EXPECT_EQ(bytes, 10 * (kMostPieces + 1) + 3 * kChunk);
}

// Each byte is in one chunk, in order, and lies in its page as it lies in the storage's page.
TEST(FillChunk, HasEachByteOnceForRandomOps) {
  std::mt19937_64 random(1);
  const auto upTo = [&](std::uint64_t most) { return random() % most + 1; };
  for (int round = 0; round < 200; ++round) {
    std::vector<core::Op> ops;
    std::uint64_t total = 0;
    for (std::uint64_t i = upTo(40); i > 0; --i) {
      ops.push_back(op(upTo(1 << 30), upTo(1 << 30), upTo(round % 2 == 0 ? 5000 : 200'000)));
      total += ops.back().bytes;
    }
    const auto align = round % 3 == 0 ? OpEnd::kLocal : OpEnd::kRemote;
    std::vector<core::Op> back;
    for (const ChunkPlan& plan : cut(ops, align)) {
      std::uint64_t end = 0;
      ASSERT_FALSE(plan.pieces.empty());
      for (const ChunkPiece& piece : plan.pieces) {
        ASSERT_GE(piece.place, end);
        end = piece.place + piece.op.bytes;
        const auto address = align == OpEnd::kLocal ? piece.op.local : piece.op.remote;
        ASSERT_EQ(piece.place % 4096, address % 4096);
        total -= piece.op.bytes;
        core::Op* const last = back.empty() ? nullptr : &back.back();
        if (last != nullptr && back.size() <= ops.size() &&
            last->bytes < ops[back.size() - 1].bytes) {
          ASSERT_EQ(last->local + last->bytes, piece.op.local);
          ASSERT_EQ(last->remote + last->bytes, piece.op.remote);
          last->bytes += piece.op.bytes;
        } else {
          back.push_back(piece.op);
        }
      }
      ASSERT_EQ(end, plan.used);
      ASSERT_LE(end, kChunk);
    }
    EXPECT_EQ(total, 0U);
    EXPECT_EQ(back, ops);
  }
}

}  // namespace
}  // namespace viaduct::move
