#include "measure/result/table.h"

#include <fmt/format.h>

#include <utility>
#include <vector>

#include "base/sizes.h"
#include "base/text_table.h"
#include "measure/result/text.h"

namespace viaduct::measure {
namespace {

constexpr std::size_t kIndent = 9;  // of lines that explain a row

std::string percent(std::optional<double> part) {
  return part ? fmt::format("{:.0f}%", *part) : "-";
}

const std::vector<base::TextColumn> kRowColumns{
    {.title = "block", .least = 9},  {.title = "batch", .least = 6},
    {.title = "GB/s", .least = 8},   {.title = "+/-", .least = 5},
    {.title = "of max", .least = 6}, {.title = "skips", .least = 5},
    {.title = "p50 us", .least = 9}, {.title = "p99 us", .least = 9},
    {.title = "CPU/GB", .least = 7}};
const std::vector<base::TextColumn> kPatternColumns{
    {.title = "size B", .least = 12}, {.title = "time us", .least = 9},
    {.title = "algbw", .least = 8},   {.title = "busbw", .least = 8},
    {.title = "#wrong", .least = 6},  {.title = "+/-", .least = 5},
    {.title = "of max", .least = 6},  {.title = "skips", .least = 5},
    {.title = "CPU/GB", .least = 7}};

std::string spreadOf(const Row& row) {
  return percent(row.gb_per_s_spread ? std::optional(*row.gb_per_s_spread * 100) : std::nullopt);
}

std::string ofMax(const Row& row) {
  return percent(row.ceiling ? std::optional(row.ceiling->percent) : std::nullopt);
}

std::vector<std::string> cellsOf(const Row& row, const Operation& operation) {
  std::string size = fmt::to_string(operation.size);
  if (row.verdict == Verdict::kFailed) return {std::move(size)};
  return {std::move(size),
          digits(operation.time_us),
          digits(operation.algbw),
          digits(operation.busbw),
          operation.wrong ? fmt::to_string(*operation.wrong) : "N/A",
          spreadOf(row),
          ofMax(row),
          skipsWords(row),
          digits(row.cpu_s_per_gb)};
}

std::vector<std::string> cellsOf(const Row& row) {
  std::string block = base::showSize(row.block_size), batch = fmt::to_string(row.batch_size);
  if (row.verdict == Verdict::kFailed) return {std::move(block), std::move(batch)};
  const auto& latency = row.latency_us;
  return {std::move(block),
          std::move(batch),
          digits(row.gb_per_s),
          spreadOf(row),
          ofMax(row),
          skipsWords(row),
          digits(latency ? std::optional(latency->p50) : std::nullopt),
          digits(latency ? std::optional(latency->p99) : std::nullopt),
          digits(row.cpu_s_per_gb)};
}

}  // namespace

RowTable::RowTable(std::size_t width)
    : rows_(kRowColumns, width), patterns_(kPatternColumns, width), kv_(width) {}

std::string RowTable::add(const Row& row) {
  if (row.kv) return kv_.add(row);
  std::string what = fmt::format("{} {}", row.backend, opKindName(row.op));
  if (row.operation) what += fmt::format(", {} of {} members", row.scheme, row.initiators);
  if (!row.heat.empty()) what += fmt::format(", {} blocks", row.heat);
  if (usesGpu(row)) what += ", " + row.memory;
  if (!row.copied_by.empty()) what += ", copied by " + row.copied_by;
  base::TextTable& table = row.operation ? patterns_ : rows_;
  std::string path = pathWords(row), out;
  // A row that moved nothing has no path, and causes no new heading.
  if (what != what_ || (path != path_ && !path.empty())) {
    out = (what_.empty() ? "" : "\n") + wrapped(path.empty() ? what : what + ": " + path, 0) +
          table.head();
    what_ = std::move(what);
    path_ = std::move(path);
  }
  out += table.row(row.operation ? cellsOf(row, *row.operation) : cellsOf(row));
  for (const std::string& line : deviceLines(row)) out += wrapped(line, kIndent);
  if (!isGood(row.verdict)) out += wrapped("^ " + loudName(row.verdict) + ": " + row.why, kIndent);
  if (row.verdict == Verdict::kUnproven) out += wrapped("^ unproven: " + row.why, kIndent);
  // The remark about a path holds for many rows.
  if (!row.remark.empty() && row.remark != remark_) out += wrapped("^ " + row.remark, kIndent);
  remark_ = row.remark;
  return out;
}

}  // namespace viaduct::measure
