// Compares two sides: finds the rows that belong together, and how much faster one side is.
// Threads: pure functions over plain values.
#pragma once

#include <viaduct/result.h>

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "base/words.h"
#include "measure/result/rank_sum.h"
#include "measure/result/report.h"

namespace viaduct::measure {

// A 95 % interval needs at least this number of runs on each side.
inline constexpr std::size_t kFewestRuns = 4;

struct CompareOptions {
  bool across_machines = false;  // compare although the machines differ
  bool across_settings = false;
  bool across_time = false;  // compare although the runs did not take turns
  // Pairs rows only by their position in the run and their block size. Use it for two sides that
  // one command measures, whose rows may differ in everything else.
  bool by_place = false;
  std::optional<double> slower = {};  // 0.05: report rows of B that are more than 5 % slower
  double least_effect = kLeastEffect;

  // Returns the smallest difference that enough runs are likely to show. A difference as small as
  // least_effect is shown only half of the time.
  double seenEffect() const { return 2 * least_effect; }
};

enum class Difference : std::uint8_t {
  kFaster,  // the whole interval is above 1, by more than the least effect
  kSlower,  // the whole interval is below 1, by more than the least effect
  kNoneSeen,
  kTooFewRuns,  // too few runs of this row on one side
  kNotInTurns,  // drift of the machine would look like a difference
  kUnusable,    // a row of one side is invalid or has no rate; `note` says why
};
inline constexpr base::Words<Difference, 6> kDifferences{
    {{"faster", Difference::kFaster},
     {"slower", Difference::kSlower},
     {"no difference seen", Difference::kNoneSeen},
     {"not enough runs", Difference::kTooFewRuns},
     {"runs not in turns", Difference::kNotInTurns},
     {"not compared", Difference::kUnusable}}};
constexpr const char* differenceName(Difference difference) {
  return base::wordOf(kDifferences, difference);
}

struct RowComparison {
  Row a = {}, b = {};                     // the row of the first run of each side
  double a_gb_per_s = 0, b_gb_per_s = 0;  // medians over the runs of each side
  std::optional<RatioEstimate> rate = {};
  std::optional<double> p50 = {}, p99 = {};  // the ratio of B to A
  Difference difference = Difference::kTooFewRuns;
  bool too_slow = false;      // by more than CompareOptions::slower, with 95 % confidence
  bool perhaps_slow = false;  // noise hides whether B is slower by more than that
  // How many runs of each side would show a difference of seenEffect(), given the present noise.
  std::size_t runs_needed = kFewestRuns;
  std::string note = {};
};

// True if the row is valid in A, and invalid in B.
bool isBroken(const RowComparison& row);

// Says whether the runs can tell a difference from noise.
enum class SampleEvidence { kEnough, kTooFewRuns, kNotInTurns };
inline constexpr base::Words<SampleEvidence, 3> kEvidences{
    {{"compared", SampleEvidence::kEnough},
     {"not enough runs", SampleEvidence::kTooFewRuns},
     {"runs not in turns", SampleEvidence::kNotInTurns}}};

struct Comparison {
  std::vector<RowComparison> rows = {};
  std::vector<std::string> only_a = {}, only_b = {};  // rows that only one side has, as text
  std::vector<std::string> differing = {};  // differences of machines and settings, as text
  std::vector<std::string> copies = {};     // files that are copies of one run, as text
  std::size_t runs_a = 0, runs_b = 0;
  SampleEvidence evidence = SampleEvidence::kEnough;
  std::size_t runsNeeded() const;  // runs of each side, enough for all rows
  bool isWorse() const;            // returns true if a row is too slow, or broken
  bool ok() const { return evidence == SampleEvidence::kEnough && !isWorse(); }
};

// Compares two sides. Each report is one run, copies of a run count once, and each run gives one
// figure for a row. Parts of one run share its conditions, so they do not show the noise between
// runs. An error names the differences, or says that no rows belong together.
Result<Comparison> compare(const std::vector<Report>& a, const std::vector<Report>& b,
                           const CompareOptions& options);

}  // namespace viaduct::measure
