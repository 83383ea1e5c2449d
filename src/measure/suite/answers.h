// What a suite's figures say: of each test and size the figures, and whether it helps. Threads:
// pure functions.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "base/words.h"
#include "measure/stats/rank_sum.h"
#include "measure/suite/suite.h"

namespace viaduct::measure {

enum class Answer : std::uint8_t {
  kHelps,     // the whole interval is above 0, by more than the least effect
  kHurts,     // below
  kNoneSeen,  // 0 is inside, or nearer than the least effect
  kTooFew,    // rounds for an interval
  kIdle,      // the path shows that nothing was done otherwise than in the baseline
  kUnusable,  // a row that it is made of cannot be used
};
inline constexpr base::Words<Answer, 6> kAnswers{{{"helps", Answer::kHelps},
{"hurts", Answer::kHurts},
{"no difference seen", Answer::kNoneSeen},
{"too few rounds to tell", Answer::kTooFew},
{"does nothing here", Answer::kIdle},
{"cannot be used", Answer::kUnusable}}};
constexpr const char* answerName(Answer answer) { return base::wordOf(kAnswers, answer); }

// What says whether a size is better: where latency is all there is to a transfer its median (p50),
// above that the rate.
enum class JudgedBy : std::uint8_t { kLatency, kRate };
JudgedBy judgedBy(std::uint64_t size);
const char* judgedByName(JudgedBy by);

// Of a test over the baseline; 0.1 is 10 % more GB/s, or 10 % lower latency.
struct Improvement {
  double value = 0;
  std::optional<Interval> interval = {};  // of 95 %
  friend bool operator==(const Improvement&, const Improvement&) = default;
};

// Medians over the rounds; what was not measured is not there.
struct SuiteFigures {
  std::optional<double> gb_per_s = {}, p50_us = {}, p95_us = {}, p99_us = {};
  std::optional<double> cores_busy = {}, completions_per_s = {};
  std::string rails = {};  // how many the path names: "4", or "2-4" where rounds differ
};

struct SuiteCell {
  std::uint64_t size = 0;
  SuiteFigures figures = {};
  // Not of the baseline.
  std::optional<Improvement> rate = {}, latency = {};
  Answer answer = Answer::kTooFew;
  std::string note = {};  // why it is idle, or cannot be used
  const std::optional<Improvement>& judged() const {
    return judgedBy(size) == JudgedBy::kLatency ? latency : rate;
  }
};

struct SuiteAnswers {
  std::size_t test = 0;
  std::vector<SuiteCell> cells = {};  // by the test's sizes
  std::string text = {};              // the answer in a sentence
};

// One for each test, in order; cells are missing of those that are not measured.
std::vector<SuiteAnswers> answersOf(const Suite& suite);

// Whether every row can be used.
bool allGood(const Suite& suite);

}  // namespace viaduct::measure
