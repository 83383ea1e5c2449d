#include "measure/result/table.h"

#include <gtest/gtest.h>

#include <sstream>

namespace viaduct::measure {
namespace {

Row someRow() {
  return {.backend = "local",
          .block_size = 4096,
          .batch_size = 64,
          .gb_per_s = 12.345,
          .gb_per_s_spread = 0.02,
          .latency_us = Latency{.p50 = 21.2, .p99 = 300.4},
          .cpu_s_per_gb = 0.0815,
          .path = {{"local", "mapped", "copy", 262144, 64, Proven::kYes}},
          .ceiling = Ceiling{"memory", 14, 88.2}};
}

TEST(Table, ALineSaysItAll) {
  EXPECT_EQ(tableHead(),
            "backend  op        block  batch     GB/s   +/- of max    p50 us    p99 us  CPU/GB  "
            "path\n");
  EXPECT_EQ(tableLine(someRow()),
            "local    write   4.0 KiB     64     12.3    2%    88%      21.2       300  0.0815  "
            "local/mapped on copy, proven\n");
}

TEST(Table, WhatWasNotMeasuredIsADash) {
  EXPECT_EQ(
      tableLine({.backend = "tcp", .block_size = 1}),
      "tcp      write       1 B      1        -     -      -         -         -       -  \n");
}

TEST(Table, AVerdictIsLoudAndHasItsReason) {
  Row row = someRow();
  row.verdict = Verdict::kSilentRail;
  row.why = "eth1 carried nothing";
  const std::string text = tableLine(row);
  EXPECT_NE(text.find("\n         ^ SILENT-RAIL: eth1 carried nothing\n"), std::string::npos)
      << text;
  row.verdict = Verdict::kUnproven;
  EXPECT_EQ(tableLine(row).find("eth1"), std::string::npos);
}

TEST(Table, AFailureShowsNoFigures) {
  const Row row{.backend = "tcp",
                .block_size = 1,
                .gb_per_s = 3,
                .verdict = Verdict::kFailed,
                .why = "no route"};
  EXPECT_EQ(tableLine(row), "tcp      write       1 B      1\n         ^ FAILED: no route\n");
}

TEST(Table, NoLineIsLongerThan120Columns) {
  Row row = someRow();
  row.backend = "averylongbackend";
  row.batch_size = 123456;
  row.block_size = 1023 << 20U;
  row.gb_per_s = 12345678;
  row.gb_per_s_spread = 9.99;
  row.ceiling->percent = 12345;
  row.latency_us = Latency{.p50 = 123456789, .p99 = 123456789};
  row.path[0].device = std::string(100, 'x');
  row.verdict = Verdict::kInvalid;
  row.why = "a reason " + std::string(300, 'y') + " of\nmany words" + std::string(200, ' ') + "end";
  std::istringstream lines(tableHead() + tableLine(row));
  for (std::string line; std::getline(lines, line);) EXPECT_LE(line.size(), 120U) << line;
}

}  // namespace
}  // namespace viaduct::measure
