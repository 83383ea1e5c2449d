// `viaduct suite`: small real runs, and the errors for wrong input.
#include <gtest/gtest.h>
#include <signal.h>
#include <unistd.h>
#include <viaduct/settings.h>

#include <algorithm>
#include <chrono>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>
#include <set>
#include <thread>

#include "app/program.h"
#include "support/free_port.h"
#include "support/text.h"

namespace viaduct::testing {
namespace {

namespace fs = std::filesystem;
using Json = nlohmann::json;
using Words = std::vector<std::string>;

class SuiteCommand : public ::testing::Test {
 protected:
  SuiteCommand()
      : folder_(::testing::TempDir() + "viaduct_suite_app_" + std::to_string(::getpid()) + "/"),
        file_(folder_ + "suite.json") {
    fs::create_directories(folder_);
  }
  ~SuiteCommand() override { fs::remove_all(folder_); }
  std::string put(const std::string& name, const std::string& text) const {
    std::ofstream(folder_ + name) << text;
    return folder_ + name;
  }
  Json written() const {
    std::ifstream in(file_);
    return Json::parse(in);
  }
  // Two tests of two sizes over memory, which take about a second.
  Words small(const Words& more = {}) const {
    return withFlags({"suite", "--backend", "local", "--also", "single: VIADUCT_COPY_THREADS=1",
                      "--sizes", "4K,64K", "--duration", "2ms", "--warmup", "1ms", "--json", file_},
                     more);
  }
  std::string folder_, file_;
};

TEST_F(SuiteCommand, HelpNamesEveryTestAndShowsExamples) {
  Program run({"suite", "--help"});
  EXPECT_EQ(run.finish(), 0);
  for (const char* part : {"baseline", "inject", "doorbell", "coalescing", "combined", "--rounds",
                           "--meet PLACE", "viaduct suite --backend ofi --rails"})
    EXPECT_TRUE(has(run.out(), part)) << part;
  Program all({"--help"});
  EXPECT_EQ(all.finish(), 0);
  EXPECT_TRUE(has(all.out(), "suite")) << all.out();
}

TEST_F(SuiteCommand, InvalidInputIsNamedAndNothingIsMeasured) {
  const std::pair<Words, const char*> cases[] = {
      {{"--tests", "inlining"},
       "--tests: invalid: there is no test \"inlining\"; what to do: name some of baseline, "
       "inject, "
       "doorbell, coalescing, combined"},
      {{"--tests", "inject,inject"}, "inject is named twice"},
      {{"--sizes", "64,64"}, "--sizes: invalid: 64 B is named twice"},
      {{"--sizes", "0"}, "--sizes: invalid: the size is 0"},
      {{"--rounds", "3"}, "--rounds: invalid: \"3\" is not a whole number from 4"},
      {{"--fresh"}, "--fresh: invalid: --fresh needs"},
      {{"--backend", "carrier-pigeon"}, "carrier-pigeon is not a backend"},
      {{"--backend", "tcp,local"}, "a suite measures one backend"},
      {{"--backend", "file"}, "a suite measures backends between members"},
      {{"--rails", "no-such-link", "--tests", "baseline"}, "--rails: "},
      {{"--device_list", "eth0"}, "--device_list: invalid: it is a flag of `viaduct bench`"},
      {{"--iterations", "5"}, "--iterations: invalid: it is a flag of `viaduct bench`"},
      {{"--block", "3K", "--sizes", "64K"},
       "--block and --sizes: invalid: 64 KiB is not a multiple"},
      {{"--also", "VIADUCT_SOCKETS=4"}, "does not begin with a name and a colon"},
      {{"--also", "x: --batch 4"}, "\"--batch\" is not an assignment"},
      {{"--also", "x:"}, "the test sets nothing"},
      {{"--also", "x: VIADUCT_NOPE=1"}, "--also: invalid: VIADUCT_NOPE: there is no such setting"},
      {{"--also", "x: VIADUCT_MEET=a:1"}, "VIADUCT_MEET: both sides need the same value"},
      {{"--also", "x: VIADUCT_SOCKETS=many"}, "VIADUCT_SOCKETS=many"},
      {{"--also", "inject: VIADUCT_SOCKETS=4"}, "there is a test \"inject\" already"},
      {{"--json", "/no/such/folder/s.json"}, "/no/such/folder/s.json"},
      {{"--json", "/dev/null"}, "not a regular file"},
      {{"--json", put("notes", "to do")}, "the file holds no suite rounds"},
      {{"--json", put("new", "{\"format\": \"viaduct-suite/9\"}")},
       "its format is viaduct-suite/9"},
  };
  for (const auto& [more, said] : cases) {
    Program run(withFlags({"suite"}, more));
    EXPECT_EQ(run.finish(), 2) << said;
    EXPECT_TRUE(has(run.err(), said)) << said << "\n" << run.err();
    EXPECT_EQ(run.out(), "");
  }
}

TEST_F(SuiteCommand, MeasuresAndNamesUnavailableTests) {
  Program run(small({"--rounds", "4"}));
  EXPECT_EQ(run.finish(), 0) << run.err();
  for (const char* part :
       {"4 of 4 rounds, 2 processes", "\nsingle: VIADUCT_COPY_THREADS=1\n",
        "\ninject: not built into the backend local: ofi has it\n",
        "\ncombined: no optimisation is available to combine\n", "95 % interval"})
    EXPECT_TRUE(has(run.out(), part)) << part << "\n" << run.out();
  const Json json = written();
  EXPECT_EQ(json.at("format"), "viaduct-suite/1");
  EXPECT_EQ(json.at("end"), "complete");
  EXPECT_EQ(json.at("runs").size(), 8U);
  ASSERT_EQ(json.at("results").size(), 4U);
  for (const Json& result : json.at("results")) {
    for (const char* figure :
         {"gb_per_s", "p50_us", "p95_us", "p99_us", "completions_per_s", "rails"})
      EXPECT_TRUE(result.contains(figure)) << figure << result;
    if (result.at("test") == "single") {
      EXPECT_EQ(result.at("rate_improvement").at("interval_95").size(), 2U);
    }
  }
  // Rounds differ in the order of their tests, so the first test of round 2 is not that of round 1.
  EXPECT_EQ(json.at("runs")[0].at("test"), "baseline");
  EXPECT_EQ(json.at("runs")[2].at("test"), "single");
}

TEST_F(SuiteCommand, TheVariableSaysTheBackendWhereNoFlagDoes) {
  const Words words{"suite", "--tests",    "baseline", "--sizes", "4K", "--rounds",
                    "4",     "--duration", "2ms",      "--json",  file_};
  Program one(words, {"VIADUCT_BACKENDS=local"});
  EXPECT_EQ(one.finish(), 0) << one.err();
  EXPECT_EQ(written().at("runs")[0].at("rows")[0].at("backend"), "local");
  Program two(words, {"VIADUCT_BACKENDS=local,tcp"});
  EXPECT_EQ(two.finish(), 2) << two.out();
  EXPECT_TRUE(has(two.err(), "a suite measures one backend")) << two.err();
}

TEST_F(SuiteCommand, ABackendWithNothingToOptimiseIsReportedAtOnce) {
  for (const Words& more : {Words{"--backend", "local"}, Words{"--backend", "tcp"},
                            Words{"--backend", "local", "--tests", "inject"}}) {
    Program run(withFlags({"suite"}, more));
    EXPECT_EQ(run.finish(), 2) << run.out();
    EXPECT_TRUE(has(run.err(), "nothing to compare with the baseline: inject: not built into"))
        << run.err();
    EXPECT_EQ(run.out(), "");
  }
}

TEST_F(SuiteCommand, ANamedTestHasToBeMeasurable) {
  Program run(small({"--tests", "inject", "--rounds", "4"}));
  EXPECT_EQ(run.finish(), 1) << run.out();
  EXPECT_TRUE(has(run.err(), "inject was not measured: not built into the backend local"))
      << run.err();
  EXPECT_TRUE(has(run.out(), "\nsingle: ")) << "what is added is measured: " << run.out();
}

// The system chooses the only rail, as no --rails names it. Tests that need one rail are measured.
TEST_F(SuiteCommand, MeasuresTheBackendOverItsOnlyRail) {
  const auto built = builtInBackends();
  if (std::find(built.begin(), built.end(), "ofi") == built.end())
    GTEST_SKIP() << "skipped: ofi is not built in";
  Program run({"suite", "--backend", "LIBFABRIC", "--tests", "inject,doorbell", "--sizes", "64",
               "--rounds", "4", "--duration", "2ms", "--output", "json"});
  EXPECT_EQ(run.finish(), 0) << run.err();
  const Json json = Json::parse(run.out());
  std::set<std::string> tests;
  for (const Json& result : json.at("results")) tests.insert(result.at("test").get<std::string>());
  EXPECT_EQ(tests, (std::set<std::string>{"baseline", "doorbell", "inject"})) << run.out();
}

TEST_F(SuiteCommand, ContinuesAfterTheRoundsOfItsFile) {
  Program first(small({"--rounds", "4"}));
  ASSERT_EQ(first.finish(), 0) << first.err();
  const Json before = written();
  Program again(small({"--rounds", "4"}));
  EXPECT_EQ(again.finish(), 0) << again.err();
  EXPECT_TRUE(has(again.err(), "has all 4 rounds: nothing is left to measure")) << again.err();
  EXPECT_EQ(again.out(), first.out());
  Program more(small({"--rounds", "6"}));
  EXPECT_EQ(more.finish(), 0) << more.err();
  EXPECT_TRUE(has(more.err(), "continuing after the 4 rounds of ")) << more.err();
  const Json after = written();
  EXPECT_EQ(after.at("runs").size(), 12U);
  EXPECT_EQ(after.at("runs")[0], before.at("runs")[0]);
  Program other(small({"--rounds", "6", "--duration", "3ms"}));
  EXPECT_EQ(other.finish(), 2);
  EXPECT_TRUE(has(other.err(), "duration: \"2ms\" there, \"3ms\" now")) << other.err();
  EXPECT_EQ(written(), after);
  Program fresh(small({"--rounds", "4", "--duration", "3ms", "--fresh", "--output", "json"}));
  EXPECT_EQ(fresh.finish(), 0) << fresh.err();
  EXPECT_EQ(fresh.err(), "") << "no progress beside JSON";
  EXPECT_EQ(Json::parse(fresh.out()), written());
  EXPECT_EQ(written().at("rounds_done"), 4);
}

TEST_F(SuiteCommand, ContinuesOnlyWithTheSameLibraryVariables) {
  const auto built = builtInBackends();
  if (std::find(built.begin(), built.end(), "ofi") == built.end())
    GTEST_SKIP() << "skipped: ofi is not built in";
  const Words words{"suite",      "--backend", "ofi",    "--tests", "baseline", "--sizes", "64",
                    "--duration", "2ms",       "--json", file_,     "--rounds", "4"};
  Program first(words);
  EXPECT_EQ(first.finish(), 0) << first.err();
  ::setenv("FI_VIADUCT_TEST", "1", 1);
  Program again(words);
  EXPECT_EQ(again.finish(), 2) << again.out();
  ::unsetenv("FI_VIADUCT_TEST");
  EXPECT_TRUE(has(again.err(), "agent.FI_VIADUCT_TEST: \"not there\" there, \"1\" now"))
      << again.err();
}

TEST_F(SuiteCommand, AnInterruptKeepsWholeRounds) {
  Program run(small({"--rounds", "100000"}));
  const auto end = std::chrono::steady_clock::now() + std::chrono::seconds(60);
  while (!fs::exists(file_) && std::chrono::steady_clock::now() < end) std::this_thread::yield();
  ASSERT_TRUE(fs::exists(file_));
  ::kill(run.pid(), SIGINT);
  EXPECT_EQ(run.finish(), 130) << run.err();
  EXPECT_TRUE(has(run.err(), "of 100000 rounds are complete and saved in " + file_)) << run.err();
  const Json json = written();
  const auto done = json.at("rounds_done").get<std::size_t>();
  EXPECT_GE(done, 1U);
  EXPECT_EQ(json.at("runs").size(), 2 * done);
  EXPECT_TRUE(has(run.out(), "rounds, 2 processes")) << run.out();
}

TEST_F(SuiteCommand, SaysHowManyRoundsTheFileHasWhenItCannotBeWritten) {
  Program run(small({"--rounds", "100000"}));
  const auto end = std::chrono::steady_clock::now() + std::chrono::seconds(60);
  while (!fs::exists(file_) && std::chrono::steady_clock::now() < end) std::this_thread::yield();
  const std::string moved = folder_.substr(0, folder_.size() - 1) + "_moved";
  fs::rename(folder_, moved);  // so that no further round can be saved
  EXPECT_EQ(run.finish(), 1) << run.err();
  fs::rename(moved, folder_);
  const auto kept = written().at("rounds_done").get<std::size_t>();
  EXPECT_TRUE(has(run.err(), std::to_string(kept + 1) + " of 100000 rounds are complete, and " +
                                 file_ + " has " + std::to_string(kept) + " of them"))
      << run.err();
}

TEST_F(SuiteCommand, ReportShowsASuiteAndCompareRefusesIt) {
  const std::string junit = folder_ + "tests.xml";
  Program run(small({"--rounds", "4", "--junit", junit}));
  ASSERT_EQ(run.finish(), 0) << run.err();
  std::ifstream tests(junit);
  const std::string xml{std::istreambuf_iterator<char>(tests), {}};
  EXPECT_TRUE(has(xml, "failures=\"0\"") && has(xml, "name=\"single 64 KiB\"")) << xml;
  Program validate({"validate", file_});
  EXPECT_EQ(validate.finish(), 0) << validate.out();
  Program page({"report", file_, "-o", "-"});
  EXPECT_EQ(page.finish(), 0) << page.err();
  for (const char* part :
       {"Suite suite.json", "single: VIADUCT_COPY_THREADS=1", "better by", "suite.json: baseline"})
    EXPECT_TRUE(has(page.out(), part)) << part;
  Program compare({"compare", file_, file_});
  EXPECT_EQ(compare.finish(), 2);
  EXPECT_TRUE(has(compare.err(), "this is a file of `viaduct suite`")) << compare.err();
}

// Two members at one meeting place; rank 0 writes the file.
class SuiteOfTwo : public SuiteCommand {
 protected:
  Words member(const char* rank, const Words& more) const {
    return withFlags({"suite", "--backend", "tcp", "--also", "two: VIADUCT_SOCKETS=2", "--tests",
                      "two", "--duration", "2ms", "--warmup", "1ms", "--meet", place_, "--rank",
                      rank, "--meet-timeout", "30s"},
                     more);
  }
  const Words open_{"VIADUCT_SECRET=for the test"};
  const std::string place_ = "127.0.0.1:" + std::to_string(freePort());
};

TEST_F(SuiteOfTwo, MembersTakeTheSameTurnsAndGoOnTogether) {
  for (const char* rounds : {"4", "5"}) {
    Program second(member("1", {"--sizes", "64K", "--rounds", rounds}), open_);
    Program first(member("0", {"--sizes", "64K", "--rounds", rounds, "--json", file_}), open_);
    EXPECT_EQ(first.finish(), 0) << first.err();
    EXPECT_EQ(second.finish(), 0) << second.err();
    EXPECT_TRUE(has(first.out(), std::string(rounds) + " of " + rounds + " rounds, 2 processes"))
        << first.out();
    EXPECT_EQ(second.out(), "");
  }
  EXPECT_EQ(written().at("runs").size(), 10U);
}

TEST_F(SuiteOfTwo, AMemberWithOtherFlagsIsNamed) {
  Program second(member("1", {"--sizes", "4K"}), open_);
  Program first(member("0", {"--sizes", "64K"}), open_);
  EXPECT_EQ(first.finish(), 2);
  EXPECT_EQ(second.finish(), 2);
  EXPECT_TRUE(has(first.err(), "rank 1 has other settings: ")) << first.err();
  EXPECT_TRUE(has(second.err(), "rank 0 has other settings: ")) << second.err();
}

TEST_F(SuiteOfTwo, TheFileHasToBeRankZeros) {
  Program second(member("1", {"--sizes", "64K", "--rounds", "4"}), open_);
  Program first(member("0", {"--sizes", "64K", "--rounds", "4", "--json", file_}), open_);
  ASSERT_EQ(first.finish(), 0) << first.err();
  ASSERT_EQ(second.finish(), 0) << second.err();
  Program with_file(member("1", {"--sizes", "64K", "--json", file_}), open_);
  Program without(member("0", {"--sizes", "64K"}), open_);
  EXPECT_EQ(with_file.finish(), 2);
  EXPECT_EQ(without.finish(), 2);
  EXPECT_TRUE(has(without.err(), "rank 1 has a file with 4 rounds, and rank 0 with 0"))
      << without.err();
}

}  // namespace
}  // namespace viaduct::testing
