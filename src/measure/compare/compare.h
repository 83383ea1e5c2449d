// Two sides of a comparison: which rows belong together, and how much faster one is. Threads: pure
// functions over plain values.
#pragma once

#include <viaduct/result.h>

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "base/words.h"
#include "measure/result/report.h"
#include "measure/stats/rank_sum.h"

namespace viaduct::measure {

// Fewer runs on one side give no 95 % interval.
inline constexpr std::size_t kFewestRuns = 4;

struct CompareOptions {
  bool across_machines = false;  // go on although the machines differ
  bool across_settings = false;
  bool across_time = false;  // go on although the runs did not take turns
  // Rows belong together that have the same place in their runs and the same block size: for two
  // sides that were planned together, where anything else may differ.
  bool by_place = false;
  std::optional<double> slower = {};  // 0.05: complain of rows of B that are more than 5 % slower
  double least_effect = kLeastEffect;
};

enum class Difference : std::uint8_t {
  kFaster,  // the whole interval is above 1, by more than the least effect
  kSlower,  // below 1
  kNoneSeen,
  kTooFewRuns,  // of this row on one side
  kNotInTurns,  // drift of the machine would look like a difference
  kUnusable,    // a row of one side cannot be used: `note` says why
};
inline constexpr base::Words<Difference, 6> kDifferences{{{"faster", Difference::kFaster},
{"slower", Difference::kSlower},
{"no difference seen", Difference::kNoneSeen},
{"not enough runs", Difference::kTooFewRuns},
{"runs not in turns", Difference::kNotInTurns},
{"not compared", Difference::kUnusable}}};
constexpr const char* differenceName(Difference difference) {
  return base::wordOf(kDifferences, difference);
}

struct RowComparison {
  Row a = {}, b = {};                     // with several files a side: of the first
  double a_gb_per_s = 0, b_gb_per_s = 0;  // medians over the runs of the side
  std::optional<RatioEstimate> rate = {};
  std::optional<double> p50 = {}, p99 = {};  // ratio of B to A
  Difference difference = Difference::kTooFewRuns;
  bool too_slow = false;      // slower than CompareOptions::slower, with confidence
  bool perhaps_slow = false;  // the noise is too large to tell
  std::string note = {};
};

// The row could be used in A, and cannot be in B.
bool isBroken(const RowComparison& row);

// Whether the runs can tell a difference from noise.
enum class SampleEvidence { kEnough, kTooFewRuns, kNotInTurns };

struct Comparison {
  std::vector<RowComparison> rows = {};
  std::vector<std::string> only_a = {}, only_b = {};  // rows without a partner, in words
  std::vector<std::string> differing = {};            // machines and settings, in words
  std::size_t runs_a = 0, runs_b = 0;
  SampleEvidence evidence = SampleEvidence::kEnough;
  bool isWorse() const;  // a row is too slow, or broken
  bool ok() const { return evidence == SampleEvidence::kEnough && !isWorse(); }
};

// Each report is one run, and each run gives one figure for a row: parts of one run share its luck,
// so that they say nothing of the noise between runs. An error says what differs, or that no rows
// belong together.
Result<Comparison> compare(const std::vector<Report>& a, const std::vector<Report>& b,
                           const CompareOptions& options);

}  // namespace viaduct::measure
