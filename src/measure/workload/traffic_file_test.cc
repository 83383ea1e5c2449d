#include "measure/workload/traffic_file.h"

#include <gtest/gtest.h>

namespace viaduct::measure {
namespace {

std::string complaint(std::string_view text) {
  const auto parsed = parseTraffic(text, "m.txt");
  return parsed ? "" : parsed.error().file + ": " + parsed.error().detail;
}

TEST(TrafficFile, RowsAreSendersAndColumnsReceivers) {
  const auto parsed = parseTraffic(
      "# prefill to decode\n"
      "\n"
      "  0   64K  1M   # member 0\r\n"
      "4096, 0, 0\n"
      "0\t1MB\t0",
      "m.txt");
  ASSERT_TRUE(parsed) << parsed.error().text();
  EXPECT_EQ(*parsed, (TrafficMatrix{3, {0, 65536, 1048576, 4096, 0, 0, 0, 1'000'000, 0}}));
}

TEST(TrafficFile, AWrongSizeIsNamedByLineAndColumn) {
  EXPECT_EQ(complaint("0 1K\n# x\n  4X 0\n").substr(0, 28), "m.txt: line 3 column 3: \"4X\"");
  EXPECT_EQ(complaint("0 -1\n1 0\n").substr(0, 24), "m.txt: line 1 column 3: ");
}

TEST(TrafficFile, AMatrixHasARowAndAColumnForEachMember) {
  EXPECT_EQ(complaint("0 1K 1K\n1K 0\n"),
            "m.txt: line 2 column 1: 2 sizes, but the first row has 3");
  EXPECT_EQ(complaint("0 1K 1K\n1K 0 1K\n"), "m.txt: 2 rows of 3 sizes are no matrix of members");
  EXPECT_EQ(complaint("0 1K\n1K 0\n1K 0\n"), "m.txt: 3 rows of 2 sizes are no matrix of members");
  EXPECT_EQ(complaint("0\n"), "m.txt: 1 rows of 1 sizes are no matrix of members");
  EXPECT_EQ(complaint("# nothing\n"), "m.txt: 0 rows of 0 sizes are no matrix of members");
}

TEST(TrafficFile, AMemberSendsToOthersOnly) {
  EXPECT_EQ(complaint("0 1K\n1K 1\n"), "m.txt: line 2 column 4: member 1 would send to itself");
  EXPECT_EQ(complaint("0 0\n0 0\n"), "m.txt: no member sends anything");
}

TEST(TrafficFile, AMatrixHasALimit) {
  std::string row;
  for (std::uint32_t i = 0; i < kMostMatrixMembers + 1; ++i) row += "0 ";
  EXPECT_EQ(complaint(row), "m.txt: line 1 column 257: a matrix has at most 128 members");
}

}  // namespace
}  // namespace viaduct::measure
