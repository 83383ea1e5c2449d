#include "measure/report/suite_conduct.h"

#include <gtest/gtest.h>

#include "measure/report/suite_testing.h"

namespace viaduct::measure {
namespace {

// Returns a suite without rounds, with three tests that are measured and one that is not.
Suite freshSuite(std::uint32_t rounds) {
  Suite suite = someSuite(0);
  suite.rounds = rounds;
  suite.environment = {};
  return suite;
}

class FakeRuns {
 public:
  RunOutcome run(std::uint32_t round, std::size_t test) {
    turns.push_back({round, test});
    RunOutcome out{.members = {{.rank = 0, .host = {.cpu_model = cpu}}}};
    if (turns.size() == stop_at) {
      out.end = RunEnd::kInterrupted;
      out.problem = "interrupted";
    }
    out.rows = {rowOf(kLarge, 1, 1)};
    return out;
  }
  TurnsEnd conductInto(Suite& suite) {
    return conduct(suite, {.run = [this](auto round, auto test) { return run(round, test); },
                           .save = [this](const Suite& now) -> Status {
                             saved.push_back(now.rounds_done);
                             last = now;
                             if (unwritable) return Error{.operation = "--json"};
                             return Ok{};
                           }});
  }
  std::vector<Turn> turns;
  std::vector<std::uint32_t> saved;
  Suite last;
  std::size_t stop_at = 0;
  std::string cpu = "one";
  bool unwritable = false;
};

TEST(Conduct, EveryTestHasItsTurnInEveryRoundAndEveryRoundIsKept) {
  FakeRuns fake;
  Suite suite = freshSuite(4);
  EXPECT_EQ(fake.conductInto(suite).end, RunEnd::kComplete);
  ASSERT_EQ(fake.turns.size(), 12U);
  EXPECT_EQ(fake.turns[3], (Turn{1, 2}));
  EXPECT_EQ(fake.saved, (std::vector<std::uint32_t>{1, 2, 3, 4}));
  EXPECT_EQ(suite.runs.size(), 12U);
  EXPECT_EQ(suite.end, "complete");
  EXPECT_EQ(suite.environment.members.size(), 1U);
}

TEST(Conduct, AnInterruptKeepsOnlyCompleteRounds) {
  FakeRuns fake;
  fake.stop_at = 8;  // in the third round
  Suite suite = freshSuite(4);
  const TurnsEnd end = fake.conductInto(suite);
  EXPECT_EQ(end.end, RunEnd::kInterrupted);
  EXPECT_EQ(end.problem, "interrupted");
  EXPECT_EQ(fake.saved, (std::vector<std::uint32_t>{1, 2}));
  EXPECT_EQ(suite.rounds_done, 2U);
  EXPECT_EQ(suite.runs.size(), 6U);
  EXPECT_EQ(suite.end, "2 of 4 rounds");
}

TEST(Conduct, ContinuesAfterTheCompleteRounds) {
  FakeRuns first;
  first.stop_at = 8;
  Suite suite = freshSuite(4);
  first.conductInto(suite);
  FakeRuns second;
  EXPECT_EQ(second.conductInto(suite).end, RunEnd::kComplete);
  ASSERT_EQ(second.turns.size(), 6U);
  EXPECT_EQ(second.turns[0], (Turn{2, 1})) << "the third round's order, not the first one's";
  EXPECT_EQ(suite.runs.size(), 12U);
  FakeRuns third;
  EXPECT_EQ(third.conductInto(suite).end, RunEnd::kComplete);
  EXPECT_TRUE(third.turns.empty());
}

TEST(Conduct, OtherMachinesCannotContinueTheSuite) {
  FakeRuns first;
  first.stop_at = 4;
  Suite suite = freshSuite(4);
  first.conductInto(suite);
  FakeRuns second;
  second.cpu = "another";
  const TurnsEnd end = second.conductInto(suite);
  EXPECT_EQ(end.end, RunEnd::kFailed);
  EXPECT_NE(end.problem.find("the machines changed"), std::string::npos);
  EXPECT_EQ(suite.rounds_done, 1U);
}

TEST(Conduct, AFileThatCannotBeWrittenEndsTheSuite) {
  FakeRuns fake;
  fake.unwritable = true;
  Suite suite = freshSuite(4);
  EXPECT_EQ(fake.conductInto(suite).end, RunEnd::kFailed);
  EXPECT_EQ(fake.turns.size(), 3U);
}

TEST(Differences, AreNamed) {
  const Suite kept = someSuite(4);
  EXPECT_TRUE(differencesOf(kept, kept).empty());
  Suite wanted = kept;
  wanted.rounds = 9;
  EXPECT_TRUE(differencesOf(kept, wanted).empty()) << "more rounds may be asked for";
  wanted.version = "2";
  wanted.settings[1].value = "2s";
  wanted.agent[0].value = "4";
  wanted.tests[1].settings[0].value = "1us";
  wanted.tests[2].sizes = {kSmall};
  wanted.tests[3].absent.clear();
  EXPECT_EQ(
      differencesOf(kept, wanted),
      (std::vector<std::string>{
          "version: \"1\" there, \"2\" now", "duration: \"200ms\" there, \"2s\" now",
          "agent.sockets: \"1\" there, \"4\" now", "better: VIADUCT_SPIN: \"0\" there, \"1us\" now",
          "same: sizes: \"65536\" there, \"256\" now",
          "absent: not measured: \"not built in\" there, \"not there\" now"}));
  wanted = kept;
  wanted.tests.pop_back();
  EXPECT_EQ(differencesOf(kept, wanted),
            std::vector<std::string>{
                "tests: \"baseline,better,same,absent\" there, \"baseline,better,same\" now"});
}

}  // namespace
}  // namespace viaduct::measure
