#include "measure/result/table.h"

#include <fmt/format.h>

#include <cmath>

#include "base/sizes.h"
#include "measure/result/text.h"

namespace viaduct::measure {
namespace {

constexpr std::size_t kWidth = 120;
constexpr std::size_t kPathWidth = 30;  // what the other columns leave

// The text in lines that start with `indent` spaces; broken between words where that is possible.
std::string wrapped(std::string text, std::size_t indent) {
  const std::size_t room = kWidth - indent;
  for (char& c : text)
    if (c == '\n' || c == '\r' || c == '\t') c = ' ';
  std::string out;
  while (!text.empty()) {
    std::size_t end = text.size();
    if (end > room) {
      end = text.rfind(' ', room);
      if (end == std::string::npos || end == 0) end = room;
    }
    out += std::string(indent, ' ') + text.substr(0, end) + "\n";
    const auto next = text.find_first_not_of(' ', end);
    text = next == std::string::npos ? std::string{} : text.substr(next);
  }
  return out;
}

std::string shortened(std::string text, std::size_t most) {
  if (text.size() > most) text.replace(most - 3, std::string::npos, "...");
  return text;
}

std::string percent(std::optional<double> part) {
  return part ? fmt::format("{:.0f}%", *part) : "-";
}

// How many transfers could have been skipped unseen.
std::string skipsWords(const Row& row) {
  if (!row.checks) return "-";
  if (row.checks->smallest_caught == 0) return "none";
  return fmt::format("<{:.0f}%", std::ceil(row.checks->smallest_caught * 100));
}

}  // namespace

std::string tableHead() {
  return fmt::format("{:<8} {:<5} {:>9} {:>6} {:>8} {:>5} {:>6} {:>5} {:>9} {:>9} {:>7}  {}\n", "backend",
                     "op", "block", "batch", "GB/s", "+/-", "of max", "skips", "p50 us", "p99 us", "CPU/GB",
                     "path");
}

std::string tableLine(const Row& row) {
  const auto latency = row.latency_us;
  const auto spread = row.gb_per_s_spread;
  std::string out = fmt::format("{:<8} {:<5} {:>9} {:>6}", shortened(row.backend, 8),
                                opKindName(row.op), base::showSize(row.block_size), row.batch_size);
  if (row.verdict != Verdict::kFailed)
    out += fmt::format(" {:>8} {:>5} {:>6} {:>5} {:>9} {:>9} {:>7}  {}", digits(row.gb_per_s),
                       percent(spread ? std::optional(*spread * 100) : std::nullopt),
                       percent(row.ceiling ? std::optional(row.ceiling->percent) : std::nullopt),
                       skipsWords(row), digits(latency ? std::optional(latency->p50) : std::nullopt),
                       digits(latency ? std::optional(latency->p99) : std::nullopt),
                       digits(row.cpu_s_per_gb), shortened(pathWords(row), kPathWidth));
  out += "\n";
  if (!isGood(row.verdict)) out += wrapped("^ " + loudName(row.verdict) + ": " + row.why, 9);
  if (row.verdict == Verdict::kUnproven) out += wrapped("^ unproven: " + row.why, 9);
  if (!row.remark.empty()) out += wrapped("^ " + row.remark, 9);
  return out;
}

}  // namespace viaduct::measure
