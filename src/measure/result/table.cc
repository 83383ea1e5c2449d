#include "measure/result/table.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <utility>
#include <vector>

#include "base/sizes.h"
#include "base/text_table.h"
#include "measure/result/matrix_table.h"
#include "measure/result/pipeline_table.h"
#include "measure/result/swap_table.h"
#include "measure/result/text.h"

namespace viaduct::measure {
namespace {

constexpr std::array kRowColumns{
    base::figure("block", 9),  base::figure("batch", 6),  base::figure("GB/s", 8),
    base::figure("+/-", 5),    base::figure("of max", 6), base::figure("skips", 5),
    base::figure("p50 us", 9), base::figure("p99 us", 9), base::figure("CPU/GB", 7)};
constexpr std::array kPatternColumns{
    base::figure("size B", 12), base::figure("time us", 9), base::figure("algbw", 8),
    base::figure("busbw", 8),   base::figure("#wrong", 6),  base::figure("+/-", 5),
    base::figure("of max", 6),  base::figure("skips", 5),   base::figure("CPU/GB", 7)};

std::vector<std::string> cellsOf(const Row& row, const Operation& operation) {
  if (row.verdict == Verdict::kFailed) return base::cells(operation.size);
  return base::cells(
      operation.size, digits(operation.time_us), digits(operation.algbw), digits(operation.busbw),
      operation.wrong ? fmt::to_string(*operation.wrong) : "N/A", percent(row.gb_per_s_spread),
      ofMax(row.ceiling), skipsWords(row), digits(row.cpu_s_per_gb));
}

std::vector<std::string> cellsOf(const Row& row) {
  const std::string block = base::showSize(row.block_size);
  if (row.verdict == Verdict::kFailed) return base::cells(block, row.batch_size);
  const auto& latency = row.latency_us;
  return base::cells(block, row.batch_size, digits(row.gb_per_s), percent(row.gb_per_s_spread),
                     ofMax(row.ceiling), skipsWords(row),
                     digits(latency ? std::optional(latency->p50) : std::nullopt),
                     digits(p99Of(row)), digits(row.cpu_s_per_gb));
}

// Returns the words of a heading.
std::string whatOf(const Row& row) {
  std::string out = fmt::format("{} {}", row.backend, opKindName(row.op));
  if (row.as<Operation>() != nullptr)
    out += fmt::format(", {} of {} members", row.scheme, row.initiators);
  if (row.bidirectional) out += ", both directions added up";
  if (row.threads > 1) out += fmt::format(", {} threads", row.threads);
  if (row.pipeline_depth > 1) out += fmt::format(", {} in flight", row.pipeline_depth);
  if (!row.heat.empty()) out += fmt::format(", {} blocks", row.heat);
  if (usesGpu(row)) out += ", " + row.memory;
  return row.copied_by.empty() ? out : out + ", copied by " + row.copied_by;
}

std::string paceNote(const Row& row) {
  if (!row.rate) return {};
  return note(fmt::format("{} of {} transfers a second, {} arrivals",
                          digits(row.rate->reached_per_s), digits(row.rate->asked_per_s),
                          row.rate->arrivals));
}

std::string verdictNote(const Row& row) {
  if (!isGood(row.verdict)) return note("^ " + loudName(row.verdict) + ": " + row.why);
  return row.verdict == Verdict::kUnproven ? note("^ unproven: " + row.why) : "";
}

void showPatterns(std::span<const Row> rows, TableSink& sink) {
  std::vector<std::string> titles;
  std::vector<std::vector<base::TextRow>> tables;
  for (const Row& row : rows) {
    auto at = std::ranges::find(titles, whatOf(row));
    if (at == titles.end()) {
      at = titles.insert(at, whatOf(row));
      tables.emplace_back();
    }
    tables[static_cast<std::size_t>(at - titles.begin())].push_back(
        {.cells = cellsOf(row, *row.as<Operation>()), .after = verdictNote(row)});
  }
  for (std::size_t i = 0; i < titles.size(); ++i) sink.table(titles[i], kPatternColumns, tables[i]);
}

}  // namespace

void showTables(std::span<const Row> rows, Kinds which, TableSink& sink) {
  if (rows.empty()) return;
  const Row& first = rows.front();
  if (first.as<PipelineRow>() != nullptr) return pipeline::show(rows, sink);
  if (first.as<SwapRow>() != nullptr) return swap::show(rows, sink);
  if (first.as<MatrixRow>() != nullptr) return matrix::show(rows, sink);
  if (which != Kinds::kAll) return;
  if (first.as<KvWorkload>() != nullptr) return showKv(rows, sink);
  if (first.as<Operation>() != nullptr) showPatterns(rows, sink);
}

RowTable::RowTable(std::size_t width)
    : rows_(kRowColumns, width), patterns_(kPatternColumns, width), kv_(width) {}

std::string RowTable::add(const Row& row) {
  if (row.as<KvWorkload>() != nullptr) return kv_.add(row);
  if (row.as<PipelineRow>() != nullptr || row.as<SwapRow>() != nullptr ||
      row.as<MatrixRow>() != nullptr)
    return {};
  const auto* const operation = row.as<Operation>();
  std::string what = whatOf(row);
  base::TextTable& table = operation != nullptr ? patterns_ : rows_;
  std::string path = pathWords(row), out;
  // A row that moved nothing has no path. Its missing path alone causes no new heading.
  if (what != what_ || (path != path_ && !path.empty())) {
    out = (what_.empty() ? "" : "\n") + wrapped(path.empty() ? what : what + ": " + path, 0) +
          table.head();
    what_ = std::move(what);
    path_ = std::move(path);
  }
  out += table.row(operation != nullptr ? cellsOf(row, *operation) : cellsOf(row));
  out += paceNote(row);
  for (const std::string& line : deviceLines(row)) out += note(line);
  out += verdictNote(row);
  // Many rows in sequence may have the same remark, which is printed once.
  if (!row.remark.empty() && row.remark != remark_) out += note("^ " + row.remark);
  remark_ = row.remark;
  return out;
}

}  // namespace viaduct::measure
