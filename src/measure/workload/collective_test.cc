#include "measure/workload/collective.h"

#include <gtest/gtest.h>

namespace viaduct::measure {
namespace {

using Pairs = std::vector<Pair>;

OperationBytes bytesOf(Scheme pattern, std::uint32_t members, std::uint64_t size,
                       bool reads = false) {
  const Pieces pieces = piecesOf(pattern, members);
  return operationBytes(
      {.scheme = pattern, .initiators = members, .targets = members, .reads = reads},
      {.block_bytes = pieceBytes(size, pieces.cuts), .batch = pieces.moved});
}

TEST(Patterns, PairSendersWithTheirReceivers) {
  EXPECT_EQ(flowsOf(Scheme::kSendrecv, 3), (Pairs{{0, 1}, {1, 2}, {2, 0}}));
  EXPECT_EQ(flowsOf(Scheme::kAllgather, 2), (Pairs{{0, 1}, {1, 0}}));
  EXPECT_EQ(flowsOf(Scheme::kAllreduceTraffic, 3), (Pairs{{0, 1}, {1, 2}, {2, 0}}));
  EXPECT_EQ(flowsOf(Scheme::kBroadcast, 4), (Pairs{{0, 1}, {1, 2}, {2, 3}}));
  EXPECT_EQ(flowsOf(Scheme::kAlltoall, 3), (Pairs{{0, 1}, {0, 2}, {1, 0}, {1, 2}, {2, 0}, {2, 1}}));
}

TEST(Patterns, ReceiversInitiateReads) {
  Layout layout{.scheme = Scheme::kBroadcast, .initiators = 3, .targets = 3};
  EXPECT_EQ(pairsOf(layout), (Pairs{{0, 1}, {1, 2}}));
  layout.reads = true;
  EXPECT_EQ(pairsOf(layout), (Pairs{{1, 0}, {2, 1}}));
}

// Uses the factors of nccl-tests, by which bus bandwidth and algorithm bandwidth differ.
TEST(Patterns, TheBusiestMemberMovesTheSizeTimesTheFactor) {
  constexpr std::uint64_t kSize = 16 * 5040;
  for (std::uint64_t n = 2; n <= 9; ++n)
    for (const bool reads : {false, true}) {
      const auto busiest = [&](Scheme pattern) {
        const OperationBytes bytes = bytesOf(pattern, static_cast<std::uint32_t>(n), kSize, reads);
        EXPECT_EQ(bytes.size, kSize) << schemeName(pattern);
        return bytes.busiest;
      };
      EXPECT_EQ(busiest(Scheme::kSendrecv), kSize);
      EXPECT_EQ(busiest(Scheme::kBroadcast), kSize);
      EXPECT_EQ(busiest(Scheme::kAlltoall), kSize * (n - 1) / n);
      EXPECT_EQ(busiest(Scheme::kAllgather), kSize * (n - 1) / n);
      EXPECT_EQ(busiest(Scheme::kAllreduceTraffic), kSize * 2 * (n - 1) / n);
    }
}

TEST(Patterns, TheBytesOfAllMembersAddUp) {
  EXPECT_EQ(bytesOf(Scheme::kSendrecv, 4, 1600).moved, 6400U);
  EXPECT_EQ(bytesOf(Scheme::kBroadcast, 4, 1600).moved, 4800U);
  EXPECT_EQ(bytesOf(Scheme::kAlltoall, 4, 6400).moved, 12 * 1600U);
  EXPECT_EQ(bytesOf(Scheme::kAllgather, 4, 6400).moved, 12 * 1600U);
  EXPECT_EQ(bytesOf(Scheme::kAllreduceTraffic, 4, 6400).moved, 24 * 1600U);
}

TEST(Patterns, SizesAreRoundedDownToEqualAlignedPieces) {
  EXPECT_EQ(pieceBytes(4096, 3), 1360U);
  EXPECT_EQ(bytesOf(Scheme::kAlltoall, 3, 4096).size, 4080U);
  EXPECT_EQ(pieceBytes(40, 3), 13U);
  EXPECT_EQ(pieceBytes(2, 3), 0U);
  EXPECT_EQ(bytesOf(Scheme::kSendrecv, 3, 4097).size, 4097U);
}

TEST(Patterns, AMatrixHasASizeForEachPair) {
  Layout layout{.scheme = Scheme::kMatrix,
                .initiators = 3,
                .targets = 3,
                .matrix = {3, {0, 10, 0, 0, 0, 20, 5, 40, 0}}};
  EXPECT_EQ(pairsOf(layout), (Pairs{{0, 1}, {1, 2}, {2, 0}, {2, 1}}));
  const Workload row{.block_bytes = 40};
  for (const bool reads : {false, true}) {
    layout.reads = reads;
    const OperationBytes bytes = operationBytes(layout, row);
    EXPECT_EQ(bytes.size, 75U);
    EXPECT_EQ(bytes.moved, 75U);
    EXPECT_EQ(bytes.busiest, 50U) << "member 1 receives from both others";
  }
  EXPECT_EQ(pairsOf(layout), (Pairs{{0, 2}, {1, 0}, {1, 2}, {2, 1}}));
  EXPECT_EQ(workOf(row, streamsOf(layout, 1, false)[2]).block_bytes, 40U);
}

TEST(Patterns, EachProcessIsOneMember) {
  const Layout layout{.scheme = Scheme::kAlltoall, .initiators = 3, .targets = 3};
  EXPECT_EQ(layout.processes(), 3U);
  EXPECT_EQ(layout.initiatorRank(2), 2U);
  EXPECT_EQ(layout.targetRank(2), 2U);
  EXPECT_STREQ(layout.roleOf(1), "member");
  EXPECT_STREQ(Layout{}.roleOf(1), "target");
}

TEST(Patterns, HaveNamesOfTheirOwn) {
  for (const auto& [word, scheme] : kPatterns) {
    EXPECT_TRUE(isPattern(scheme));
    EXPECT_STREQ(schemeName(scheme), word);
  }
  for (const auto& [word, scheme] : kSchemes) EXPECT_FALSE(isPattern(scheme)) << word;
}

}  // namespace
}  // namespace viaduct::measure
