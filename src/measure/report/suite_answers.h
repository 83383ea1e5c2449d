// Evaluates a suite: the figures of each test and size, and whether the test helps. Threads: pure
// functions.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "base/words.h"
#include "measure/report/suite.h"
#include "measure/result/rank_sum.h"

namespace viaduct::measure {

enum class Answer : std::uint8_t {
  kHelps,     // the whole interval is above 0, by more than the least effect
  kHurts,     // the whole interval is below 0, by more than the least effect
  kNoneSeen,  // the interval contains 0, or is closer to 0 than the least effect
  kTooFew,    // too few rounds for an interval
  kIdle,      // the path shows that the test changed nothing
  kUnusable,  // a row of this test or of the baseline is invalid at this size
};
inline constexpr base::Words<Answer, 6> kAnswers{{{"helps", Answer::kHelps},
                                                  {"hurts", Answer::kHurts},
                                                  {"no difference seen", Answer::kNoneSeen},
                                                  {"too few rounds to tell", Answer::kTooFew},
                                                  {"does nothing here", Answer::kIdle},
                                                  {"cannot be used", Answer::kUnusable}}};
constexpr const char* answerName(Answer answer) { return base::wordOf(kAnswers, answer); }

// The figure that decides about a size. Small transfers are judged by their median latency (p50),
// larger ones by their rate.
enum class JudgedBy : std::uint8_t { kLatency, kRate };
JudgedBy judgedBy(std::uint64_t size);
const char* judgedByName(JudgedBy by);

// A test's improvement over the baseline. 0.1 means 10 % more GB/s, or 10 % lower latency.
struct Improvement {
  double value = 0;
  std::optional<Interval> interval = {};  // the 95 % interval
  friend bool operator==(const Improvement&, const Improvement&) = default;
};

// Medians over the rounds. A missing figure was not measured.
struct SuiteFigures {
  std::optional<double> gb_per_s = {}, p50_us = {}, p95_us = {}, p99_us = {};
  std::optional<double> cores_busy = {}, completions_per_s = {};
  std::string rails = {};  // number of rails in the path: "4", or "2-4" if rounds differ
};

struct SuiteCell {
  std::uint64_t size = 0;
  SuiteFigures figures = {};
  // The improvements over the baseline. The baseline itself has none.
  std::optional<Improvement> rate = {}, latency = {};
  Answer answer = Answer::kTooFew;
  std::string note = {};  // why the test is idle, or which row is invalid
  const std::optional<Improvement>& judged() const {
    return judgedBy(size) == JudgedBy::kLatency ? latency : rate;
  }
};

struct SuiteAnswers {
  std::size_t test = 0;
  std::vector<SuiteCell> cells = {};  // by the test's sizes
  std::string text = {};              // the answer as a sentence
};

// Returns one element for each test, in order. A test that is not measured has no cells.
std::vector<SuiteAnswers> answersOf(const Suite& suite);

// True if every row is valid.
bool allGood(const Suite& suite);

}  // namespace viaduct::measure
