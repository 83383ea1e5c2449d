// `viaduct compare` as users run it: accepted and refused files, and its exit code.
#include <gtest/gtest.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>

#include "app/program.h"
#include "measure/result/report.h"
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
    Row row{.backend = "tcp", .block_size = 65536, .batch_size = 64, .gb_per_s = gb};
    for (const double part : {0.99, 0.995, 1.0, 1.005, 1.01})
      row.gb_per_s_parts.push_back(gb * part);
    const Report report{.version = "1",
                        .started = "2026-01-02T03:04:" + std::to_string(10 + second) + "Z",
                        .environment = {.members = {{.host = {.hostname = "n"}}}},
                        .settings = {{"verify", verify}},
                        .rows = {row}};
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
  std::string folder_;
};

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
      {{"compare", "--before", good, good, "--after", good}, "A contains the same run twice"},
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
