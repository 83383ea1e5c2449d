#include "measure/workload/kv_point.h"

#include <gtest/gtest.h>

#include <set>

namespace viaduct::measure {
namespace {

KvPoint llama() {
  return {.model = "Llama-3.1-8B",
          .tokens = 8192,
          .requests = 2,
          .source = {.block = 16},
          .destination = {.block = 16}};
}

KvPoint complete(const KvPoint& point) {
  auto out = completed(point, usualKvSlack(point.requests));
  EXPECT_TRUE(out) << (out ? "" : out.error().text());
  return out ? *out : point;
}

TEST(KvPoint, ARequestHasTheBytesAndPagesOfTheModel) {
  const KvPoint point = complete(llama());
  EXPECT_EQ(point.request_bytes, std::uint64_t{1} << 30U);
  EXPECT_EQ(point.pages, 32'768U);
  // 512 blocks x 4 table sets x max(2.0, 2 x 1.25) + 8, each with 2 MiB.
  EXPECT_EQ(point.source.pool, 512U * 4 * 5 / 2 + 8);
  EXPECT_EQ(point.source.bytes, point.source.pool << 21U);
}

TEST(KvPoint, ARankOfMoreRanksTakesItsHeadsFromOneRank) {
  KvPoint point = llama();
  point.source.tp = 4;
  point.destination = {.tp = 8, .block = 64};
  point = complete(point);
  EXPECT_EQ(point.request_bytes, std::uint64_t{128} << 20U);
  EXPECT_EQ(point.pages, 32'768U);  // of the source, whose blocks are smaller
}

TEST(KvPoint, RowsOfDeepSeekV4AreOnePieceForEachBlock) {
  KvPoint point{.model = "DeepSeek-V4-Pro", .tokens = 131'072};
  point.source.arrangement = point.destination.arrangement = KvArrangement::kRows;
  point = complete(point);
  const auto tables = tablesOf(point);
  std::size_t blocks = 0;
  for (const KvBlocks& group : tables.front()) blocks += group.source.size();
  EXPECT_EQ(blocks, 538U);
  EXPECT_EQ(point.pages, 47'482U);
}

TEST(KvPoint, TablesAreDisjointPermutationsWhichDifferBySide) {
  const KvPoint point = complete(llama());
  const auto tables = tablesOf(point);
  ASSERT_EQ(tables.size(), 8U);  // 4 sets of 2 requests
  std::set<std::uint32_t> source, destination;
  for (const KvRequestBlocks& request : tables) {
    source.insert(request[0].source.begin(), request[0].source.end());
    destination.insert(request[0].destination.begin(), request[0].destination.end());
  }
  EXPECT_EQ(source.size(), 8U * 512);
  EXPECT_EQ(destination.size(), 8U * 512);
  EXPECT_LT(*source.rbegin(), point.source.pool);
  EXPECT_NE(tables[0][0].source, tables[0][0].destination);
  EXPECT_EQ(tablesOf(point)[3][0].source, tables[3][0].source);
  KvPoint other = point;
  other.seed = 2;
  EXPECT_NE(tablesOf(other)[0][0].source, tables[0][0].source);
}

TEST(KvPoint, LayoutsThatDoNotMapNameTheReason) {
  KvPoint point = llama();
  point.destination.tp = 3;
  const auto made = completed(point, 1);
  ASSERT_FALSE(made);
  EXPECT_NE(made.error().text().find("3 ranks can neither divide nor copy"), std::string::npos)
      << made.error().text();
}

}  // namespace
}  // namespace viaduct::measure
