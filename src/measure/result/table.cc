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

std::string pathText(const Row& row) {
  Path path;
  for (const ProvenShare& s : row.path)
    path.shares.push_back({s.backend, s.way, s.device, s.bytes, s.ops});
  return path.text();
}

std::string loudName(Verdict verdict) {
  std::string name = verdictName(verdict);
  for (char& c : name) c = c >= 'a' && c <= 'z' ? static_cast<char>(c - 'a' + 'A') : c;
  return name;
}

}  // namespace

std::string tableHead() {
  return fmt::format("{:<8} {:<5} {:>9} {:>6} {:>9} {:>6} {:>10} {:>10} {:>8}  {}\n", "backend",
                     "op", "block", "batch", "GB/s", "+/-", "p50 us", "p99 us", "CPU s/GB", "path");
}

std::string tableLine(const Row& row) {
  const std::string front = fmt::format("{:<8} {:<5} {:>9} {:>6} ", row.backend, opKindName(row.op),
                                        base::showSize(row.block_size), row.batch_size);
  if (row.verdict == Verdict::kFailed) return fmt::format("{} FAILED: {}\n", front, row.why);
  std::string line = fmt::format(
      "{}{:>9} {:>5.0f}% {:>10} {:>10} {:>8.3f}  {}\n", front, digits(row.gb_per_s.value_or(0)),
      row.gb_per_s_spread.value_or(0) * 100, digits(row.latency_us.value_or(Latency{}).p50),
      digits(row.latency_us.value_or(Latency{}).p99), row.cpu_s_per_gb.value_or(0), pathText(row));
  if (isGood(row.verdict)) return line;
  return fmt::format("{}{} {}: {}\n", line, front, loudName(row.verdict), row.why);
}

}  // namespace viaduct::measure
