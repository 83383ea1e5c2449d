#include "measure/result/table.h"

#include <fmt/format.h>

#include "base/sizes.h"

namespace viaduct::measure {
namespace {

// Three digits that mean something.
std::string digits(double value) {
  if (value >= 100) return fmt::format("{:.0f}", value);
  if (value >= 10) return fmt::format("{:.1f}", value);
  return fmt::format("{:.2f}", value);
}

}  // namespace

std::string tableHead() {
  return fmt::format("{:<8} {:<5} {:>9} {:>6} {:>9} {:>6} {:>10} {:>10} {:>8}  {}\n", "backend",
                     "op", "block", "batch", "GB/s", "+/-", "p50 us", "p99 us", "CPU s/GB", "path");
}

std::string tableLine(const Row& row) {
  const Workload& w = row.workload;
  const std::string front = fmt::format("{:<8} {:<5} {:>9} {:>6} ", w.backend, opKindName(w.op),
                                        base::showSize(w.block_bytes), w.batch);
  if (row.verdict == Verdict::kFailed) return fmt::format("{} FAILED: {}\n", front, row.why);
  std::string line =
      fmt::format("{}{:>9} {:>5.0f}% {:>10} {:>10} {:>8.3f}  {}\n", front, digits(row.gb_per_s),
                  row.gb_spread * 100, digits(row.latency_us.p50), digits(row.latency_us.p99),
                  row.cpu_s_per_gb, row.path.text());
  if (row.verdict == Verdict::kOk) return line;
  return fmt::format("{}{} CORRUPT: {}\n", line, front, row.why);
}

}  // namespace viaduct::measure
