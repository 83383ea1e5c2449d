// `viaduct bench --against` measures two settings in turns, and compares them.
#include <gtest/gtest.h>
#include <signal.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>

#include "app/program.h"
#include "support/free_port.h"
#include "support/text.h"
#include "viaduct/against_settings.h"

namespace viaduct::testing {
namespace {

using Json = nlohmann::json;
using Words = std::vector<std::string>;

TEST(AgainstSettings, WordsAreSplitAsAShellDoes) {
  EXPECT_EQ(*app::splitWords("  --batch 16\t--memory  malloc "),
            (Words{"--batch", "16", "--memory", "malloc"}));
  EXPECT_EQ(*app::splitWords("A='b c' \"d'e\" ''"), (Words{"A=b c", "d'e", ""}));
  EXPECT_EQ(*app::splitWords(""), Words{});
  EXPECT_TRUE(has(app::splitWords("--batch '16").error().text(), "a quote (') is not closed"));
}

TEST(AgainstSettings, TellsFlagsFromAssignments) {
  constexpr app::FlagName kKnown[] = {{"batch"}, {"backend"}};
  const auto read = app::readOtherSettings("VIADUCT_SOCKETS=4 --batch 16 --backend=tcp", kKnown);
  EXPECT_TRUE(read.problems.empty());
  EXPECT_EQ(read.variables, Words{"VIADUCT_SOCKETS=4"});
  EXPECT_EQ(read.flags, (Words{"--batch", "16", "--backend=tcp"}));
  const auto settings = app::withVariables({}, {"VIADUCT_SOCKETS=4"});
  ASSERT_TRUE(settings);
  EXPECT_EQ(settings->sockets, 4U);
  EXPECT_EQ(app::withVariables({.sockets = 2}, {"VIADUCT_SOCKETS="})->sockets, 1U);
}

TEST(AgainstInput, InvalidInputIsNamedAndNothingIsMeasured) {
  const std::pair<const char*, const char*> cases[] = {
      {"--batch '4", "a quote (') is not closed"},
      {"", "--against: invalid: the text names no setting"},
      {"--batc 4",
       "--against: --batc: invalid: there is no such flag; what to do: did you mean --batch"},
      {"--batch 0", "--against: --batch: invalid: \"0\" is not a whole number"},
      {"--iterations 5 --duration 1s", "--against: --iterations and --duration: "},
      {"batch 4", "--against: command line: invalid: \"batch\" is not a flag"},
      {"VIADUCT_SOCKETS=many",
       "--against: VIADUCT_SOCKETS=many: invalid: the value cannot be parsed"},
      {"VIADUCT_NOPE=1", "--against: VIADUCT_NOPE: invalid: there is no such setting"},
      {"VIADUCT_MEET=a:1", "--against: VIADUCT_MEET: invalid: both sides need the same value"},
      {"--num-initiator-dev 2",
       "--against: --num_initiator_dev: invalid: both sides need the same value"},
      {"--json x", "--against: --json: invalid: both sides need the same value"},
      {"--memory allocate", "A and B are the same"},
      {"--backend tcp", "A has 16 rows and B 8"},
  };
  for (const auto& [against, said] : cases) {
    Program run({"bench", "--against", against});
    EXPECT_EQ(run.finish(), 2) << against;
    EXPECT_TRUE(has(run.err(), said)) << run.err();
    EXPECT_EQ(run.out(), "");
  }
  const std::pair<Words, const char*> flags[] = {
      {{"--rounds", "5"}, "--rounds: invalid: the flag needs --against"},
      {{"--least-effect", "5%"}, "--least_effect: invalid: the flag needs --against"},
      {{"--junit", "tests.xml"}, "--junit: invalid: the flag needs --against"},
      {{"--against", "--batch 4", "--rounds", "3"}, "\"3\" is not a whole number from 4"},
      {{"--against", "--batch 4", "--fail-if-slower", "5"}, "\"5\" is not a percentage"},
      {{"--against", "--batch 4", "--output", "csv"}, "--against and --output"},
  };
  for (const auto& [more, said] : flags) {
    Words words{"bench"};
    words = withFlags(std::move(words), more);
    Program run(words);
    EXPECT_EQ(run.finish(), 2) << said;
    EXPECT_TRUE(has(run.err(), said)) << run.err();
  }
}

class BenchAgainst : public ::testing::Test {
 protected:
  BenchAgainst()
      : file_(::testing::TempDir() + "viaduct_against_" + std::to_string(::getpid()) + ".json") {}
  ~BenchAgainst() override { std::filesystem::remove(file_); }
  Json written() const {
    std::ifstream in(file_);
    return Json::parse(in);
  }
  std::string file_;
};

TEST_F(BenchAgainst, BothSidesAreNamedAndEveryRowIsCompared) {
  const std::string junit = file_ + ".xml";
  Program run({"bench", "--backend", "local", "--block-sizes", "4K,64K", "--iterations", "40",
               "--rounds", "4", "--json", file_, "--junit", junit, "--against",
               "--memory malloc --batch 16"});
  EXPECT_EQ(run.finish(), 0) << run.err();
  EXPECT_TRUE(has(run.out(), "A: viaduct bench --backend local")) << run.out();
  EXPECT_TRUE(has(run.out(), "B: the same with --memory malloc --batch 16 (4 runs)"));
  EXPECT_TRUE(has(run.out(), "differs: memory: A allocate, B malloc"));
  EXPECT_TRUE(has(run.out(), "64:16"));
  const Json json = written();
  EXPECT_EQ(json.at("format"), "viaduct-compare/1");
  ASSERT_EQ(json.at("rows").size(), 2U);
  for (const Json& row : json.at("rows")) {
    EXPECT_EQ(row.at("batch_size"), 64);
    EXPECT_EQ(row.at("batch_size_b"), 16);
    EXPECT_EQ(row.at("interval_95").size(), 2U);  // four runs of a side suffice
  }
  EXPECT_EQ(json.at("only_a"), Json::array());
  std::ifstream tests(junit);
  const std::string xml{std::istreambuf_iterator<char>(tests), {}};
  EXPECT_TRUE(has(xml, "<testsuite name=\"viaduct bench --against\" tests=\"2\" failures=\"0\""))
      << xml;
  std::filesystem::remove(junit);
}

TEST_F(BenchAgainst, SettingsOfTheAgentsMayDiffer) {
  Program run({"bench", "--backend", "tcp", "--block-sizes", "64K", "--iterations", "8", "--rounds",
               "4", "--output", "json", "--least-effect", "99%", "--against", "VIADUCT_SOCKETS=4"});
  EXPECT_EQ(run.finish(), 0) << run.err();
  const Json json = Json::parse(run.out());
  EXPECT_EQ(json.at("outcome"), "compared");
  EXPECT_EQ(json.at("rows").at(0).at("difference"), "no difference seen");
  EXPECT_EQ(json.at("differing"), Json::array({"agent.sockets: A 1, B 4"}));
}

TEST_F(BenchAgainst, MembersOfADistributedRunTakeTheSameTurns) {
  const std::string place = "127.0.0.1:" + std::to_string(freePort());
  const auto member = [&](const char* rank) {
    return Words{"bench", "--backend", "tcp", "--block-sizes",  "64K",       "--iterations",
                 "8",     "--rounds",  "4",   "--against",      "--batch 4", "--meet",
                 place,   "--rank",    rank,  "--meet-timeout", "20s"};
  };
  const Words open{"VIADUCT_SECRET=for the test"};
  Program second(member("1"), open);
  Program first(member("0"), open);
  EXPECT_EQ(first.finish(), 0) << first.err();
  EXPECT_EQ(second.finish(), 0) << second.err();
  EXPECT_TRUE(has(first.out(), "B: the same with --batch 4 (4 runs)")) << first.out();
  EXPECT_EQ(second.out(), "");
}

TEST_F(BenchAgainst, AnInterruptKeepsWhatWasMeasured) {
  Program run({"bench", "--backend", "local", "--block-sizes", "4K", "--duration", "60s", "--json",
               file_, "--against", "--memory malloc"});
  ASSERT_NE(run.waitForWorker("bench-rank-1"), 0);
  ::kill(run.pid(), SIGINT);
  EXPECT_EQ(run.finish(), 130);
  EXPECT_TRUE(has(run.err(), "interrupted; runs with rows: 0 of A, 0 of B")) << run.err();
}

}  // namespace
}  // namespace viaduct::testing
