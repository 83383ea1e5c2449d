#include "measure/run/turns.h"

#include <gtest/gtest.h>

#include <map>
#include <string_view>

namespace viaduct::measure {
namespace {

// In `order`, "ABBA" is a run of A, two of B, and one of A. "(AB)" means both in the same second.
bool tookTurns(std::string_view order) {
  std::vector<Report> a, b;
  int second = 10;
  bool together = false;
  for (const char c : order) {
    if (c == '(' || c == ')') {
      together = c == '(';
      second += together ? 0 : 1;
      continue;
    }
    (c == 'A' ? a : b).push_back({.started = "2026-01-02T03:04:" + std::to_string(second) + "Z"});
    second += together ? 0 : 1;
  }
  return measure::tookTurns(a, b);
}

TEST(Turns, RunsTookTurnsIfNeitherSideIsFarAhead) {
  for (const char* order : {"ABBAABBA", "ABABABAB", "BABABABA", "AABBAABB", "AABBBBAA",
                            "ABBABBABBABB", "(AAAABBBB)", "A(AAABBB)B"})
    EXPECT_TRUE(tookTurns(order)) << order;
  for (const char* order :
       {"AAAABBBB", "BBBBAAAA", "AAABABBB", "AAAABBBBBBBB", "AAABBBAAABBB", "(AAAA)(BBBB)"})
    EXPECT_FALSE(tookTurns(order)) << order;
}

TEST(Turns, UnknownTimesShowNoTurns) {
  EXPECT_FALSE(tookTurns(std::vector<Report>(4), std::vector<Report>(4)));
}

using Order = std::vector<std::size_t>;

TEST(Turns, TwoSidesAreMirroredInEverySecondRound) {
  EXPECT_EQ(turnOrder(2, 0), (Order{0, 1}));
  EXPECT_EQ(turnOrder(2, 1), (Order{1, 0}));
  EXPECT_EQ(turnOrder(2, 2), (Order{1, 0}));
  EXPECT_EQ(turnOrder(2, 3), (Order{0, 1}));
}

TEST(Turns, AnotherSideIsFirstInEveryPairOfRounds) {
  EXPECT_EQ(turnOrder(3, 0), (Order{0, 1, 2}));
  EXPECT_EQ(turnOrder(3, 1), (Order{2, 1, 0}));
  EXPECT_EQ(turnOrder(3, 2), (Order{1, 2, 0}));
  EXPECT_EQ(turnOrder(3, 3), (Order{0, 2, 1}));
  EXPECT_EQ(turnOrder(3, 4), (Order{2, 0, 1}));
  EXPECT_EQ(turnOrder(3, 6), turnOrder(3, 0));
}

TEST(Turns, DriftFavoursNoneOverTwoRounds) {
  for (const std::size_t sides : {2U, 3U, 5U})
    for (std::uint32_t round = 0; round < 12; round += 2) {
      std::map<std::size_t, std::size_t> place;
      for (const std::uint32_t r : {round, round + 1}) {
        const Order order = turnOrder(sides, r);
        for (std::size_t i = 0; i < order.size(); ++i) place[order[i]] += i;
      }
      EXPECT_EQ(place.size(), sides);
      for (const auto& [side, sum] : place) EXPECT_EQ(sum, sides - 1) << "side " << side;
    }
}

// The calls that takeTurns() made. The turn `ends_at` returns an interruption.
struct Told {
  std::vector<Turn> turns = {};
  std::vector<std::uint32_t> whole = {};
  std::size_t ends_at = 100, unkept_at = 100;

  TurnsEnd take(std::uint32_t first, std::uint32_t rounds) {
    return takeTurns(2, first, rounds,
                     {.turn = [this](const Turn& turn) -> TurnsEnd {
                        turns.push_back(turn);
                        if (turns.size() < ends_at) return {};
                        return {RunEnd::kInterrupted, "stop"};
                      },
                      .whole = [this](std::uint32_t round) -> TurnsEnd {
                        whole.push_back(round);
                        if (whole.size() < unkept_at) return {};
                        return {RunEnd::kFailed, "full"};
                      }});
  }
};

TEST(Turns, RoundsContinueAtTheGivenRound) {
  Told told;
  EXPECT_EQ(told.take(2, 4).end, RunEnd::kComplete);
  EXPECT_EQ(told.turns, (std::vector<Turn>{{2, 1}, {2, 0}, {3, 0}, {3, 1}}));
  EXPECT_EQ(told.whole, (std::vector<std::uint32_t>{2, 3}));
}

TEST(Turns, ATurnThatEndsEarlyIsTheLast) {
  Told told{.ends_at = 3};
  const TurnsEnd end = told.take(0, 4);
  EXPECT_EQ(end.end, RunEnd::kInterrupted);
  EXPECT_EQ(end.problem, "stop");
  EXPECT_EQ(told.turns.size(), 3U);
  EXPECT_EQ(told.whole, std::vector<std::uint32_t>{0});
}

TEST(Turns, ARoundThatCannotBeSavedIsTheLast) {
  Told told{.unkept_at = 2};
  EXPECT_EQ(told.take(0, 4).problem, "full");
  EXPECT_EQ(told.turns.size(), 4U);
}

}  // namespace
}  // namespace viaduct::measure
