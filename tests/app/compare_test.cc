// `viaduct compare` as users run it: accepted and refused files, and its exit code.
#include <gtest/gtest.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>

#include "app/program.h"
#include "measure/result/report.h"
#include "measure/result/row_testing.h"
#include "support/text.h"

namespace viaduct::testing {
namespace {

using measure::Report;
using measure::Row;

class CompareCommand : public ::testing::Test {
 protected:
  CompareCommand()
      : folder_(::testing::TempDir() + "viaduct_compare_" + std::to_string(::getpid()) + "/") {
    std::filesystem::create_directories(folder_);
  }
  ~CompareCommand() override { std::filesystem::remove_all(folder_); }
  std::string file(const std::string& name, const std::string& content) const {
    std::ofstream(folder_ + name) << content;
    return folder_ + name;
  }
  std::string result(const std::string& name, double gb, const std::string& verify = "full",
                     int second = 5) const {
    std::vector<double> parts;
    for (const double part : {0.99, 0.995, 1.0, 1.005, 1.01}) parts.push_back(gb * part);
    Row row{.backend = "tcp", .block_size = 65536, .batch_size = 64};
    row.verified = verify == "full" ? measure::Verified::kFull : measure::Verified::kOff;
    Report report{.version = "1",
                  .started = "2026-01-02T03:04:" + std::to_string(10 + second) + "Z",
                  .environment = {.members = {{.host = {.hostname = host_}}}},
                  .settings = {{"verify", verify}},
                  .rows = {measure::withCounts(row, parts)}};
    measure::nameRun(report.rows);
    return file(name, toJson(report));
  }
  // Four runs of one side, two seconds apart.
  std::vector<std::string> four(const std::string& side, double gb, int second,
                                const std::string& verify = "full") const {
    std::vector<std::string> out;
    for (const double luck : {1.0, 1.005, 0.995, 1.002}) {
      out.push_back(result(side + std::to_string(out.size()), gb * luck, verify, second));
      second += 2;
    }
    return out;
  }
  std::vector<std::string> compared(double a, double b, const std::vector<std::string>& more = {},
                                    int b_starts = 1) const {
    std::vector<std::string> out{"compare", "--before"};
    for (const std::string& file : four("a", a, 0)) out.push_back(file);
    out.emplace_back("--after");
    for (const std::string& file : four("b", b, b_starts)) out.push_back(file);
    out.insert(out.end(), more.begin(), more.end());
    return out;
  }
  std::string folder_, host_ = "n";
};

TEST_F(CompareCommand, CopiesOfOneRunAreOneRun) {
  // The copies differ in their start times, which alternate between the two sides.
  std::vector<std::string> words{"compare"};
  for (const auto& [side, gb] : {std::pair{"--before", 10.0}, std::pair{"--after", 12.0}}) {
    words.emplace_back(side);
    const std::string first = result(std::string(side).substr(2), gb);
    std::ifstream in(first);
    const std::string text{std::istreambuf_iterator<char>(in), {}};
    for (int copy = 0; copy < 4; ++copy) {
      std::string edited = text;
      const auto at = edited.find("03:04:15Z");
      ASSERT_NE(at, std::string::npos);
      edited.replace(at + 6, 2, std::to_string(20 + 2 * copy + (gb == 12.0 ? 1 : 0)));
      // A copy with another run id still counts as the same run, because its counts are the same.
      if (copy == 3) edited.replace(edited.find("\"run\": \"") + 8, 4, "beef");
      words.push_back(file(std::string(side).substr(2) + std::to_string(copy), edited));
    }
  }
  Program run(words);
  EXPECT_EQ(run.finish(), 4) << run.out();
  EXPECT_TRUE(has(run.out(), "A: 4 files are one run")) << run.out();
  EXPECT_TRUE(has(run.out(), "1 row: 1 not enough runs")) << run.out();
}

TEST_F(CompareCommand, AnEditedResultIsRefused) {
  std::ifstream in(result("good", 10));
  std::string text{std::istreambuf_iterator<char>(in), {}};
  const auto at = text.find("\"gb_per_s\": 10");
  ASSERT_NE(at, std::string::npos);
  text.replace(at, 14, "\"gb_per_s\": 500");
  const std::string edited = file("edited.json", text), good = result("other", 10);
  for (const auto& words : {std::vector<std::string>{"compare", good, edited},
                            {"report", good, edited, "-o", folder_ + "page.html"}}) {
    Program run(words);
    EXPECT_EQ(run.finish(), 2);
    EXPECT_TRUE(has(run.err(), "edited.json")) << run.err();
    EXPECT_TRUE(has(run.err(), "rows[0].gb_per_s")) << run.err();
  }
  Program validate({"validate", good, edited});
  EXPECT_EQ(validate.finish(), 1);
  EXPECT_TRUE(has(validate.out(), "other: 1 row, no contradiction")) << validate.out();
  EXPECT_TRUE(has(validate.out(), "  rows[0].gb_per_s: 500, but 10 follows")) << validate.out();
}

TEST_F(CompareCommand, NamesTheHostsIfTheyDiffer) {
  const std::string a = result("a", 10);
  host_ = "m";
  Program run({"compare", a, result("b", 9)});
  EXPECT_EQ(run.finish(), 4) << run.err();
  EXPECT_TRUE(has(run.out(), "differs: hosts: A n, B m")) << run.out();
}

TEST_F(CompareCommand, WritesJunitAndAnnotationsOfGithub) {
  const std::string junit = folder_ + "tests.xml";
  Program run(compared(10, 9, {"--fail-if-slower", "5%", "--junit", junit}),
              {"GITHUB_ACTIONS=true"});
  EXPECT_EQ(run.finish(), 1) << run.err();
  EXPECT_TRUE(has(run.out(), "::error title=viaduct compare%3A tcp write 64 x 64 KiB::too slow"))
      << run.out();
  std::ifstream in(junit);
  const std::string xml{std::istreambuf_iterator<char>(in), {}};
  EXPECT_TRUE(has(xml, "tests=\"1\" failures=\"1\"")) << xml;
  Program few({"compare", result("a", 10), result("b", 9), "--json"}, {"GITHUB_ACTIONS=true"});
  EXPECT_EQ(few.finish(), 4);
  EXPECT_TRUE(has(few.err(), "::warning ")) << few.err();
  EXPECT_TRUE(nlohmann::json::accept(few.out())) << few.out();
}

TEST_F(CompareCommand, SaysHowMuchFasterAndEndsWell) {
  Program run(compared(10, 12));
  EXPECT_EQ(run.finish(), 0) << run.err();
  EXPECT_TRUE(has(run.out(), "1.200")) << run.out();
  EXPECT_TRUE(has(run.out(), "1 row: 1 faster")) << run.out();
  Program slower(compared(10, 8));
  EXPECT_EQ(slower.finish(), 0) << "nobody asked for a limit";
}

TEST_F(CompareCommand, FailsWhenSlowerThanAllowedForSure) {
  Program sure(compared(10, 9, {"--fail-if-slower", "5%"}));
  EXPECT_EQ(sure.finish(), 1) << sure.out();
  EXPECT_TRUE(has(sure.out(), "TOO SLOW")) << sure.out();
  Program allowed(compared(10, 9, {"--fail-if-slower", "20%"}));
  EXPECT_EQ(allowed.finish(), 0) << allowed.out();
  EXPECT_TRUE(has(allowed.out(), "no row is slower by more than 20 %")) << allowed.out();
}

TEST_F(CompareCommand, OneRunOfEachIsNotEnough) {
  for (const double b : {5.0, 10.0, 20.0}) {
    Program run({"compare", result("a", 10), result("b", b), "--fail-if-slower", "5%"});
    EXPECT_EQ(run.finish(), 4) << run.out();
    EXPECT_TRUE(has(run.out(), "1 row: 1 not enough runs")) << run.out();
    EXPECT_TRUE(has(run.err(), "not enough runs")) << run.err();
  }
  Program json({"compare", result("a", 10), result("b", 9), "--json"});
  EXPECT_EQ(json.finish(), 4);
  EXPECT_EQ(nlohmann::json::parse(json.out()).at("outcome"), "not enough runs");
}

TEST_F(CompareCommand, RunsThatDidNotTakeTurnsAreNotJudged) {
  Program run(compared(10, 9, {"--fail-if-slower", "5%"}, 20));
  EXPECT_EQ(run.finish(), 4) << run.out();
  EXPECT_TRUE(has(run.out(), "1 row: 1 runs not in turns")) << run.out();
  Program meant(compared(10, 9, {"--fail-if-slower", "5%", "--across-time"}, 20));
  EXPECT_EQ(meant.finish(), 1) << meant.out();
}

TEST_F(CompareCommand, NoEffectBelowTheLeastIsNamed) {
  Program run(compared(10, 10.4, {"--least-effect", "5%"}));
  EXPECT_EQ(run.finish(), 0) << run.err();
  EXPECT_TRUE(has(run.out(), "1 row: 1 no difference seen")) << run.out();
  Program usual(compared(10, 10.4));
  EXPECT_EQ(usual.finish(), 0) << usual.err();
  EXPECT_TRUE(has(usual.out(), "1 row: 1 faster")) << usual.out();
}

TEST_F(CompareCommand, SeveralRunsASide) {
  std::vector<std::string> arguments{"compare", "--before"};
  for (const double gb : {10.0, 10.4, 9.8, 10.1})
    arguments.push_back(result("a" + std::to_string(gb), gb));
  arguments.emplace_back("--after");
  for (const double gb : {10.2, 9.9, 10.3, 10.0})
    arguments.push_back(result("b" + std::to_string(gb), gb));
  Program run(arguments);
  EXPECT_EQ(run.finish(), 0) << run.err();
  EXPECT_TRUE(has(run.out(), "no difference seen")) << run.out();
}

TEST_F(CompareCommand, JsonForPrograms) {
  Program run(compared(10, 9, {"--json", "--fail-if-slower", "5%"}));
  EXPECT_EQ(run.finish(), 1);
  const auto json = nlohmann::json::parse(run.out());
  EXPECT_EQ(json.at("ok"), false);
  EXPECT_EQ(json.at("rows").at(0).at("too_slow"), true);
}

TEST_F(CompareCommand, IncomparableFilesAreNamed) {
  Program run({"compare", result("a", 10), result("b", 9, "off")});
  EXPECT_EQ(run.finish(), 2);
  EXPECT_TRUE(has(run.err(), "verify: A full, B off")) << run.err();
  Program meant({"compare", result("a", 10), result("b", 9, "off"), "--across-settings"});
  EXPECT_EQ(meant.finish(), 4) << "one run of each";
  EXPECT_TRUE(has(meant.out(), "differs: verify: A full, B off")) << meant.out();
}

TEST_F(CompareCommand, BadInputIsNamed) {
  const std::string good = result("a", 10);
  const std::pair<std::vector<std::string>, const char*> cases[] = {
      {{"compare"}, "two files are needed"},
      {{"compare", good}, "two files are needed"},
      {{"compare", good, folder_ + "none.json"}, "none.json"},
      {{"compare", good, file("cut.json", "{\"format\": \"viaduct-be")}, "ends too early"},
      {{"compare", good, file("new.json", "{\"format\": \"viaduct-bench/3\"}")},
       "its format is viaduct-bench/3"},
      {{"compare", good, file("text", "hello")}, "neither JSON nor"},
      {{"compare", good, good, "--fail-if-slower", "5"}, "\"5\" is not a percentage"},
      {{"compare", good, good, "--fail-if-slower", "-5%"}, "is not a percentage"},
      {{"compare", good, good, "--least-effect", "1"}, "\"1\" is not a percentage"},
      {{"compare", "--before", good}, "--after"},
  };
  for (const auto& [arguments, words] : cases) {
    Program run(arguments);
    EXPECT_EQ(run.finish(), 2) << words;
    EXPECT_TRUE(has(run.err(), words)) << run.err();
    EXPECT_EQ(run.out(), "");
  }
}

}  // namespace
}  // namespace viaduct::testing
