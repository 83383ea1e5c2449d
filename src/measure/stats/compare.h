// Two sides of a comparison: which rows belong together, and how much faster one is. Threads: pure
// functions over plain values.
#pragma once

#include <viaduct/result.h>

#include <cstddef>
#include <optional>
#include <string>
#include <vector>

#include "measure/result/report.h"
#include "measure/stats/rank_sum.h"

namespace viaduct::measure {

struct CompareOptions {
  bool across_machines = false;  // go on although the machines differ
  bool across_settings = false;
  // Rows belong together that have the same place in their runs and the same block size: for two
  // sides that were planned together, where anything else may differ.
  bool by_place = false;
  std::optional<double> slower = {};  // 0.05: complain of rows of B that are more than 5 % slower
};

enum class Difference {
  kFaster,  // the whole interval is above 1
  kSlower,  // below 1
  kNoneSeen,
  kUnknown,   // too few parts for an interval
  kUnusable,  // a row of one side cannot be used: `note` says why
};
const char* differenceName(Difference difference);

struct RowComparison {
  Row a = {}, b = {};                     // with several files a side: of the first
  double a_gb_per_s = 0, b_gb_per_s = 0;  // medians over the files of the side
  std::optional<RatioEstimate> rate = {};
  std::optional<double> p50 = {}, p99 = {};  // ratio of B to A
  Difference difference = Difference::kUnknown;
  bool too_slow = false;      // slower than CompareOptions::slower, with confidence
  bool perhaps_slow = false;  // the noise is too large to tell
  std::string note = {};
};

// The row could be used in A, and cannot be in B.
bool isBroken(const RowComparison& row);

struct Comparison {
  std::vector<RowComparison> rows = {};
  std::vector<std::string> only_a = {}, only_b = {};  // rows without a partner, in words
  std::vector<std::string> differing = {};            // machines and settings, in words
  bool runs_as_figures = false;                       // or their parts: see compare()
  bool ok() const;                                    // nothing too slow, and no row of B broken
};

// Several reports a side are runs of the same: their parts are taken together; with four or more
// runs on each side every run counts as one figure, so that the noise between runs is seen. An
// error says what differs, or that no rows belong together.
Result<Comparison> compare(const std::vector<Report>& a, const std::vector<Report>& b,
                           const CompareOptions& options);

}  // namespace viaduct::measure
