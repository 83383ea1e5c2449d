#include "measure/result/row.h"

#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

namespace viaduct::measure {
namespace {

Row someRow() {
  return {.workload = {"tcp", OpKind::kRead, 4096, 64, 1000, MemoryChoice::kMalloc, 9},
          .gb_per_s = 3.25,
          .gb_spread = 0.125,
          .latency_us = {1, 2, 3, 4, 5},
          .cpu_s_per_gb = 0.5,
          .completions_per_s = 1234.5,
          .path = {{{"tcp", "socket", "lo", 262144, 64}}},
          .verified = true,
          .verdict = Verdict::kCorrupt,
          .why = "block 3"};
}

TEST(Rows, ReadBackAsTheyWereWritten) {
  const auto read = rowFromJson(toJson(someRow()));
  ASSERT_TRUE(read) << read.error().text();
  EXPECT_EQ(*read, someRow());
  EXPECT_EQ(*rowFromJson(toJson(Row{})), Row{});
}

TEST(Rows, WhatIsNoRowIsRefused) {
  for (const char* text : {"", "{", "{}", "[]", "3", R"({"backend": 3})"})
    EXPECT_FALSE(rowFromJson(text)) << text;
}

TEST(Reports, SayWhereAndHowAndHideTheSecret) {
  Report report{.version = "1.2.3", .started = "2026-01-02T03:04:05Z", .rows = {someRow()}};
  report.host.hostname = "node\xff";
  report.settings.secret = "open sesame";
  const std::string text = toJson(report);
  EXPECT_EQ(text.find("sesame"), std::string::npos);
  const auto json = nlohmann::json::parse(text);
  EXPECT_EQ(json.at("format"), "viaduct-bench/1");
  EXPECT_EQ(json.at("environment").at("viaduct"), "1.2.3");
  EXPECT_EQ(json.at("settings").at("detect"), "2s");
  EXPECT_EQ(json.at("end"), "complete");
  const auto& row = json.at("rows").at(0);
  EXPECT_EQ(row.at("op"), "read");
  EXPECT_EQ(row.at("latency_us").at("p99_9"), 4);
  EXPECT_EQ(row.at("path").at(0).at("device"), "lo");
  EXPECT_EQ(row.at("verdict"), "corrupt");
}

}  // namespace
}  // namespace viaduct::measure
