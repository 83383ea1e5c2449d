#include "measure/result/table.h"

#include <gtest/gtest.h>

#include "support/text.h"

namespace viaduct::measure {
namespace {

Row tableRow() {
  return {.backend = "local",
          .block_size = 4096,
          .batch_size = 64,
          .heat = "hot",
          .iterations = 100,
          .gb_per_s = 12.345,
          .gb_per_s_spread = 0.02,
          .latency_us = Latency{.p50 = 21.2, .p99 = 300.4},
          .cpu_s_per_gb = 0.0815,
          .path = {{"local", "mapped", "copy", 262144, 64, Proven::kYes}},
          .ceiling = Ceiling{"memory", 14, 88.2},
          .checks = Checks{.transfers = 72, .smallest_caught = 0.0915}};
}

TEST(RowTable, ALineHasAllFigures) {
  EXPECT_EQ(RowTable(80).add(tableRow()),
            "local write, hot blocks: local/mapped on copy, proven\n"
            "    block  batch     GB/s   +/- of max skips    p50 us    p99 us  CPU/GB\n"
            "    4 KiB     64     12.3    2%    88%  <10%      21.2       300  0.0815\n");
}

TEST(RowTable, AHeadingSaysWhatTheFiguresAddUp) {
  Row row = tableRow();
  row.bidirectional = true;
  row.threads = 2;
  row.pipeline_depth = 8;
  const std::string text = RowTable(80).add(row);
  EXPECT_EQ(
      text.find("local write, both directions added up, 2 threads, 8 in flight, hot blocks:\n"), 0U)
      << text;
}

TEST(RowTable, ARowOfAGivenRateNamesTheAskedAndTheReachedRate) {
  Row row = tableRow();
  row.rate = OpenLoop{.asked_per_s = 2000, .reached_per_s = 1994, .arrivals = "poisson"};
  const std::string text = RowTable(80).add(row);
  EXPECT_NE(text.find("1994 of 2000 transfers a second, poisson arrivals\n"), std::string::npos)
      << text;
}

TEST(RowTable, FewTransfersHaveNoNinetyNinthPercentile) {
  Row row = tableRow();
  row.iterations = 99;
  const std::string text = RowTable(80).add(row);
  EXPECT_NE(text.find("      21.2         -  0.0815\n"), std::string::npos) << text;
}

TEST(RowTable, AHeadingPrecedesAnotherBackendOrPath) {
  RowTable table(80);
  table.add(tableRow());
  EXPECT_EQ(table.add(tableRow()).find("proven"), std::string::npos);
  Row other = tableRow();
  other.path[0].proven = Proven::kUnproven;
  EXPECT_EQ(table.add(other).find("\nlocal write, hot blocks: local/mapped on copy, unproven"), 0U);
  other.path.clear();
  EXPECT_EQ(table.add(other).find("local write"), std::string::npos) << "it has no path to name";
  other.heat = "cold";
  EXPECT_EQ(table.add(other).find("\nlocal write, cold blocks\n"), 0U);
}

Row patternRow() {
  Row row = tableRow();
  row.scheme = "alltoall";
  row.initiators = row.targets = 3;
  row.kind =
      Operation{.size = 1048560, .time_us = 812.25, .algbw = 1.291, .busbw = 0.8607, .wrong = 0};
  return row;
}

TEST(RowTable, APatternHasTheColumnsOfNcclTests) {
  EXPECT_EQ(RowTable(80).add(patternRow()),
            "local write, alltoall of 3 members, hot blocks: local/mapped on copy, proven\n"
            "      size B   time us    algbw    busbw #wrong   +/- of max skips  CPU/GB\n"
            "     1048560       812     1.29    0.861      0    2%    88%  <10%  0.0815\n");
}

TEST(RowTable, UncheckedTransfersOfAPatternAreNotCalledRight) {
  Row row = patternRow();
  row.as<Operation>()->wrong.reset();
  EXPECT_NE(RowTable(80).add(row).find(" 0.861    N/A "), std::string::npos);
}

TEST(RowTable, MissingFiguresAreDashes) {
  const std::string text = RowTable(80).add({.backend = "tcp", .block_size = 1});
  EXPECT_NE(text.find("      1 B      1        -     -      -     -         -         -       -\n"),
            std::string::npos)
      << text;
}

TEST(RowTable, CheckingEveryTransferMissesNone) {
  Row row = tableRow();
  row.checks = Checks{.transfers = 12, .smallest_caught = 0};
  EXPECT_NE(RowTable(80).add(row).find("  none "), std::string::npos);
}

TEST(RowTable, AVerdictIsInCapitalsWithItsReason) {
  Row row = tableRow();
  row.verdict = Verdict::kSilentRail;
  row.why = "eth1 carried nothing";
  std::string text = RowTable(80).add(row);
  EXPECT_NE(text.find("\n         ^ SILENT-RAIL: eth1 carried nothing\n"), std::string::npos)
      << text;
  row.verdict = Verdict::kUnproven;
  row.remark = "uneven";
  text = RowTable(80).add(row);
  EXPECT_NE(text.find("^ unproven: eth1 carried nothing\n"), std::string::npos) << text;
  EXPECT_NE(text.find("^ uneven\n"), std::string::npos) << text;
}

TEST(RowTable, AFailureShowsNoFigures) {
  const Row row{.backend = "tcp",
                .block_size = 1,
                .gb_per_s = 3,
                .verdict = Verdict::kFailed,
                .why = "no route"};
  const std::string text = RowTable(80).add(row);
  EXPECT_NE(text.find("\n      1 B      1\n         ^ FAILED: no route\n"), std::string::npos)
      << text;
}

TEST(RowTable, NoLineIsLongerThan80Columns) {
  Row row = tableRow();
  row.backend = "averylongbackend";
  row.batch_size = 123456;
  row.block_size = 1023 << 20U;
  row.gb_per_s = 1234567;
  row.gb_per_s_spread = 9.99;
  row.ceiling->percent = 12345;
  row.latency_us = Latency{.p50 = 123456789, .p99 = 123456789};
  row.path[0].device = std::string(100, 'x');
  row.verdict = Verdict::kInvalid;
  row.why = "a reason " + std::string(300, 'y') + " of\nmany words" + std::string(200, ' ') + "end";
  EXPECT_LE(testing::widestLine(RowTable(80).add(row)), 80U);
}

}  // namespace
}  // namespace viaduct::measure
