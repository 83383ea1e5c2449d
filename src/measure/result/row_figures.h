// How each figure of a row follows from its counts and from other figures. The run that measures a
// row makes its figures with these rules, and `viaduct validate` applies the same rules to a file.
// Threads: pure functions.
#pragma once

#include <cstdint>
#include <optional>
#include <span>

#include "measure/result/histogram.h"
#include "measure/result/row.h"

namespace viaduct::measure {

struct FigureRule {
  const char* figure;         // the figure's path within a row, as in docs/results.md
  const char* follows;        // the fields from which the figure follows, and how
  void (*compute)(Row& row);  // only called for rows with counts
};
std::span<const FigureRule> figureRules();
// Applies all rules, in order.
void computeFigures(Row& row);
// Applies the rules of a stage's figures, whose counts are known later than the row's.
void computeFigures(StageResult& stage);
void computeFigures(KvReplayed& replayed);

Latency latencyOf(const Histogram& nanoseconds);

// Byte counts of a row from independent sources.
struct Totals {
  double rated = 0;    // the rate was computed from these bytes
  double timed = 0;    // timed transfers x bytes of a transfer
  double all = 0;      // like `timed`, with untimed transfers; the bytes of the paths must agree
  double seconds = 0;  // duration of `rated`; 0: all totals are unknown
};
Totals totalsOf(const Row& row);
// True if two totals differ by more than 1 %. Smaller differences arise because the bytes are
// counted at different moments.
bool bytesDiffer(double a, double b);

// Sums over all hosts of a row's members.
struct Machines {
  double cpu_s = 0;  // CPU time of all programs
  double processors = 0;
};
// Returns nothing if the processors of a host are unknown.
std::optional<Machines> machinesOf(const RowCounts& counts);
// Returns the number of busy cores: `cpu` seconds of CPU over a row of `row` seconds. The counts
// span `counted` seconds. Returns 0 if much of that time lies outside of the row, as for a row of
// milliseconds.
double coresBusy(double cpu, double row, double counted);

double percentOfCeiling(double gb_per_s, double ceiling);

}  // namespace viaduct::measure
