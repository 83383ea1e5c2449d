#include "measure/stats/turns.h"

#include <gtest/gtest.h>

#include <string_view>

namespace viaduct::measure {
namespace {

// "ABBA": a run of A, then two of B, then one of A; "(AB)": both in the same second.
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

TEST(Turns, NeitherSideIsFarAhead) {
  for (const char* order : {"ABBAABBA", "ABABABAB", "BABABABA", "AABBAABB", "AABBBBAA",
                            "ABBABBABBABB", "(AAAABBBB)", "A(AAABBB)B"})
    EXPECT_TRUE(tookTurns(order)) << order;
  for (const char* order :
       {"AAAABBBB", "BBBBAAAA", "AAABABBB", "AAAABBBBBBBB", "AAABBBAAABBB", "(AAAA)(BBBB)"})
    EXPECT_FALSE(tookTurns(order)) << order;
}

TEST(Turns, UnknownTimesAreNoTurns) {
  EXPECT_FALSE(tookTurns(std::vector<Report>(4), std::vector<Report>(4)));
}

TEST(Turns, EachSideHasAsManyAndDriftFavoursNeither) {
  for (std::uint32_t rounds = 2; rounds <= 20; rounds += 2) {
    int turns = 0, places = 0;
    for (std::uint32_t turn = 0; turn < 2 * rounds; ++turn) {
      turns += isTurnOfA(turn) ? 1 : -1;
      places += (isTurnOfA(turn) ? 1 : -1) * static_cast<int>(turn);
    }
    EXPECT_EQ(turns, 0) << rounds;
    EXPECT_EQ(places, 0) << rounds;
  }
}

}  // namespace
}  // namespace viaduct::measure
