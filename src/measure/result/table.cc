#include "measure/result/table.h"

#include <fmt/format.h>

#include <cmath>
#include <utility>

#include "base/sizes.h"
#include "measure/result/text.h"

namespace viaduct::measure {
namespace {

constexpr std::size_t kIndent = 9;  // of lines that explain a row

std::string percent(std::optional<double> part) {
  return part ? fmt::format("{:.0f}%", *part) : "-";
}

std::string headOf(const std::string& what, const std::string& path, bool pattern) {
  const std::string columns =
      pattern
          ? fmt::format("{:>12} {:>9} {:>8} {:>8} {:>6} {:>5} {:>6} {:>5} {:>7}\n", "size B",
                        "time us", "algbw", "busbw", "#wrong", "+/-", "of max", "skips", "CPU/GB")
          : fmt::format("{:>9} {:>6} {:>8} {:>5} {:>6} {:>5} {:>9} {:>9} {:>7}\n", "block", "batch",
                        "GB/s", "+/-", "of max", "skips", "p50 us", "p99 us", "CPU/GB");
  return wrapped(path.empty() ? what : what + ": " + path, 0) + columns;
}

// Returns the spread, the part of the ceiling, and the share of transfers that could be skipped.
std::string trustOf(const Row& row) {
  const auto spread = row.gb_per_s_spread;
  return fmt::format(
      " {:>5} {:>6} {:>5}", percent(spread ? std::optional(*spread * 100) : std::nullopt),
      percent(row.ceiling ? std::optional(row.ceiling->percent) : std::nullopt), skipsWords(row));
}

std::string figuresOf(const Row& row, const Operation& operation) {
  return fmt::format(" {:>9} {:>8} {:>8} {:>6}{} {:>7}", digits(operation.time_us),
                     digits(operation.algbw), digits(operation.busbw),
                     operation.wrong ? fmt::to_string(*operation.wrong) : "N/A", trustOf(row),
                     digits(row.cpu_s_per_gb));
}

std::string figuresOf(const Row& row) {
  const auto latency = row.latency_us;
  return fmt::format(" {:>8}{} {:>9} {:>9} {:>7}", digits(row.gb_per_s), trustOf(row),
                     digits(latency ? std::optional(latency->p50) : std::nullopt),
                     digits(latency ? std::optional(latency->p99) : std::nullopt),
                     digits(row.cpu_s_per_gb));
}

}  // namespace

std::string TextTable::add(const Row& row) {
  if (row.kv) return kv_.add(row);
  std::string what = fmt::format("{} {}", row.backend, opKindName(row.op));
  if (row.operation) what += fmt::format(", {} of {} members", row.scheme, row.initiators);
  if (!row.heat.empty()) what += fmt::format(", {} blocks", row.heat);
  if (usesGpu(row)) what += ", " + row.memory;
  if (!row.copied_by.empty()) what += ", copied by " + row.copied_by;
  std::string path = pathWords(row), out;
  // A row that moved nothing has no path, and causes no new heading.
  if (what != what_ || (path != path_ && !path.empty())) {
    out = (what_.empty() ? "" : "\n") + headOf(what, path, row.operation.has_value());
    what_ = std::move(what);
    path_ = std::move(path);
  }
  out += row.operation ? fmt::format("{:>12}", row.operation->size)
                       : fmt::format("{:>9} {:>6}", base::showSize(row.block_size), row.batch_size);
  if (row.verdict != Verdict::kFailed)
    out += row.operation ? figuresOf(row, *row.operation) : figuresOf(row);
  out += "\n";
  for (const std::string& line : deviceLines(row)) out += wrapped(line, kIndent);
  if (!isGood(row.verdict)) out += wrapped("^ " + loudName(row.verdict) + ": " + row.why, kIndent);
  if (row.verdict == Verdict::kUnproven) out += wrapped("^ unproven: " + row.why, kIndent);
  // The remark about a path holds for many rows.
  if (!row.remark.empty() && row.remark != remark_) out += wrapped("^ " + row.remark, kIndent);
  remark_ = row.remark;
  return out;
}

}  // namespace viaduct::measure
