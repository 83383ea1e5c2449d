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
  const char* figure;         // its path within a row, as docs/results.md has it
  const char* follows;        // from which fields it follows, and how
  void (*compute)(Row& row);  // only called for rows with counts
};
std::span<const FigureRule> figureRules();
// Applies all rules, in order.
void computeFigures(Row& row);
// The same for the figures of a stage, which become known after those of its row.
void computeFigures(StageResult& stage);
void computeFigures(KvReplayed& replayed);

Latency latencyOf(const Histogram& nanoseconds);

// Byte counts of a row from independent sources.
struct Totals {
  double rated = 0;    // the rate was computed from these bytes
  double timed = 0;    // timed transfers x bytes of one
  double all = 0;      // transfers x bytes of one, with untimed ones; paths must count as much
  double seconds = 0;  // duration for `rated`; 0: all of these are unknown
};
Totals totalsOf(const Row& row);
// True if two of these differ by more than the moments of counting explain.
bool bytesDiffer(double a, double b);

// All hosts of a row's members.
struct Machines {
  double cpu_s = 0;  // of all programs
  double processors = 0;
};
// Nothing: some host does not tell.
std::optional<Machines> machinesOf(const RowCounts& counts);
// Returns the number of busy cores: `cpu` seconds of CPU over a row of `row` seconds. The counts
// span `counted` seconds. Returns 0 if much of that time lies outside of the row, as for a row of
// milliseconds.
double coresBusy(double cpu, double row, double counted);

double percentOfCeiling(double gb_per_s, double ceiling);

}  // namespace viaduct::measure
