#include "core/fault_plan.h"

#include <gtest/gtest.h>

namespace viaduct::core {
namespace {

using namespace std::chrono_literals;

TEST(FaultPlan, ReadsEveryKind) {
  const auto plan = parseFaults(
      "seed=7,delay=2ms@0.01, stop@op:1000,corrupt,drop-rail=1s@5s,drop-rail@op:3,kill-peer@10s,"
      "late-lease=5ms@op:2");
  ASSERT_TRUE(plan) << plan.error().text();
  EXPECT_EQ(plan->seed, 7U);
  ASSERT_EQ(plan->rules.size(), 7U);
  const auto& rules = plan->rules;
  EXPECT_EQ(rules[0].kind, FaultKind::kDelay);
  EXPECT_EQ(rules[0].time, Duration(2ms));
  EXPECT_EQ(std::get<Chance>(rules[0].when).of, 0.01);
  EXPECT_EQ(rules[1].kind, FaultKind::kStop);
  EXPECT_EQ(std::get<OpNumber>(rules[1].when).number, 1000U);
  EXPECT_EQ(rules[2].kind, FaultKind::kCorrupt);
  EXPECT_EQ(std::get<Chance>(rules[2].when).of, 1.0);
  EXPECT_EQ(rules[3].kind, FaultKind::kDropRail);
  EXPECT_EQ(rules[3].time, Duration(1s));
  EXPECT_EQ(std::get<After>(rules[3].when).time, Duration(5s));
  EXPECT_EQ(rules[4].time, std::nullopt);
  EXPECT_EQ(rules[5].kind, FaultKind::kKillPeer);
  EXPECT_EQ(rules[6].kind, FaultKind::kLateLease);
  EXPECT_EQ(rules[6].time, Duration(5ms));
}

TEST(FaultPlan, AnEmptyTextHasNoFaults) { EXPECT_TRUE(parseFaults("")->rules.empty()); }

struct Mistake {
  const char* text;
  const char* detail;
  const char* remedy;
};

TEST(FaultPlan, NamesTheMistakeAndTheNearestWord) {
  for (const auto& [text, detail, remedy] : {
           Mistake{"dealy=2ms", "\"dealy=2ms\": there is no fault \"dealy\"", "write delay"},
           Mistake{"seed=1,kil-peer@1s", "\"kil-peer@1s\"", "write kill-peer"},
           Mistake{"sed=1", "\"sed=1\"", "write seed"},
           Mistake{"lightning", "\"lightning\"", "name one of: seed, delay, stop"},
           Mistake{"seed=x", "not a whole number", "seed=NUMBER"},
           Mistake{"seed=1@0.5", "not a whole number", "seed=NUMBER"},
           Mistake{"delay@0.5", "a part is missing", "delay=TIME@WHEN"},
           Mistake{"stop=1s", "too many", "stop@WHEN"},
           Mistake{"kill-peer", "a part is missing", "kill-peer@WHEN"},
           Mistake{"late-lease@op:1", "a part is missing", "late-lease=TIME@WHEN"},
           Mistake{"delay=2", "\"2\" is no time", "2ms"},
           Mistake{"delay=25h", "is no time", "24 hours"},
           Mistake{"stop@1.5", "\"1.5\" names no op", "op:NUMBER"},
           Mistake{"stop@-0.1", "names no op", "op:NUMBER"},
           Mistake{"stop@op:0", "names no op", "op:NUMBER"},
           Mistake{"stop@op:x", "names no op", "op:NUMBER"},
           Mistake{"stop@", "names no op", "op:NUMBER"},
           Mistake{"stop,", "\"\"", "name one of"},
           Mistake{",", "\"\"", "name one of"},
       }) {
    const auto plan = parseFaults(text);
    ASSERT_FALSE(plan) << text;
    EXPECT_NE(plan.error().detail.find(detail), std::string::npos) << plan.error().text();
    EXPECT_NE(plan.error().remedy.find(remedy), std::string::npos) << plan.error().text();
  }
}

TEST(FaultPlan, IsRefusedUnlessItIsAskedForTwice) {
  EXPECT_TRUE(checkSettings({}));
  EXPECT_TRUE(checkSettings({.faults = "seed=7"}));
  EXPECT_TRUE(checkSettings({.faults = "stop", .faults_allowed = true}));
  const auto once = checkSettings({.faults = "stop"});
  ASSERT_FALSE(once);
  EXPECT_EQ(once.error().code, Code::kInvalid);
  EXPECT_EQ(once.error().operation, "settings: faults");
  EXPECT_NE(once.error().remedy.find("VIADUCT_FAULTS_ALLOWED"), std::string::npos)
      << once.error().text();
  const auto wrong = checkSettings({.faults = "stopp", .faults_allowed = true});
  ASSERT_FALSE(wrong);
  EXPECT_NE(wrong.error().remedy.find("write stop"), std::string::npos) << wrong.error().text();
}

}  // namespace
}  // namespace viaduct::core
