#include "measure/result/swap_table.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <optional>
#include <vector>

#include "base/sizes.h"
#include "base/text_table.h"
#include "measure/result/text.h"

namespace viaduct::measure::swap {
namespace {

// Returns the row's rate divided by the rate of the baseline for the same blocks.
std::optional<double> timesBaseline(std::span<const Row> rows, const Row& row) {
  const SwapRow& kind = *row.as<SwapRow>();
  const auto baseline = std::ranges::find_if(rows, [&](const Row& other) {
    const SwapRow& theirs = *other.as<SwapRow>();
    return theirs.way == kOneCallABlock && other.block_size == row.block_size &&
           theirs.direction == kind.direction && theirs.order == kind.order;
  });
  if (baseline == rows.end() || !row.gb_per_s || baseline->gb_per_s.value_or(0) <= 0)
    return std::nullopt;
  return *row.gb_per_s / *baseline->gb_per_s;
}

// Names the host memory. The driver copies pageable (not registered) memory through a buffer.
const char* hostWords(std::span<const Row> rows) {
  const bool pageable = std::ranges::any_of(rows, [](const Row& row) {
    return std::ranges::any_of(row.path, [](const ProvenShare& share) {
      return share.way.find("pageable") != std::string::npos;
    });
  });
  return pageable ? "host memory that is not pinned" : "pinned host memory";
}

constexpr std::array kColumns{base::figure("block"),
                              base::words("direction", base::Narrow::kHeading),
                              base::words("order", base::Narrow::kHeading),
                              base::words("way"),
                              base::figure("GB/s"),
                              base::figure("+/-"),
                              base::figure("of max"),
                              base::figure("times"),
                              base::figure("plan us"),
                              base::words("copied by", base::Narrow::kBelow)};

std::vector<std::string> cellsOf(std::span<const Row> rows, const Row& row) {
  const SwapRow& kind = *row.as<SwapRow>();
  return base::cells(
      base::showSize(row.block_size), kind.direction, kind.order, kind.way, digits(row.gb_per_s),
      percent(row.gb_per_s_spread), ofMax(row.ceiling), digits(timesBaseline(rows, row)),
      digits(row.prep_us ? std::optional(row.prep_us->mean) : std::nullopt), row.copied_by);
}

// Returns a line for each known ceiling, and a line with the reason for each unknown one. Drops
// repeated lines.
std::vector<std::string> ceilingsOf(std::span<const Row> rows) {
  std::vector<std::string> out;
  for (const Row& row : rows) {
    if (!row.ceiling_unknown.empty())
      out.push_back(fmt::format("ceiling of {}: not measured: {}", row.as<SwapRow>()->direction,
                                row.ceiling_unknown));
    if (row.ceiling)
      out.push_back(
          fmt::format("ceiling: {}, {} GB/s", row.ceiling->name, digits(row.ceiling->gb_per_s)));
  }
  std::ranges::sort(out);
  out.erase(std::unique(out.begin(), out.end()), out.end());
  return out;
}

}  // namespace

void show(std::span<const Row> all, TableSink& sink) {
  if (all.empty()) return;
  const Row& first = all.front();
  sink.line(fmt::format("swap between {} and {}", hostWords(all), first.as<SwapRow>()->gpu));
  sink.line(fmt::format("{} a copy, each way in {} in turns", counted(first.batch_size, "block"),
                        counted(first.gb_per_s_parts.size(), "round")));
  std::vector<base::TextRow> rows;
  for (const Row& row : all) {
    base::TextRow& line = rows.emplace_back(base::TextRow{.cells = cellsOf(all, row)});
    if (!isGood(row.verdict)) line.after = note("^ " + loudName(row.verdict) + ": " + row.why);
    if (row.interrupted) line.after += note("^ " + row.remark);
  }
  sink.table("", kColumns, rows);
  for (const std::string& line : ceilingsOf(all)) sink.line(line);
  if (const std::string words = unprovenWords(all); !words.empty()) sink.note(words);
  const bool good = std::ranges::all_of(all, [](const Row& row) { return isGood(row.verdict); });
  sink.line(good ? "every byte of the blocks and of the guard blocks was checked"
                 : "not every row is valid");
}

}  // namespace viaduct::measure::swap
