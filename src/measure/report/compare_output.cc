#include "measure/report/compare_output.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <nlohmann/json.hpp>

#include "base/json.h"
#include "base/lists.h"
#include "base/sizes.h"
#include "base/text_table.h"
#include "measure/result/text.h"

namespace viaduct::measure {
namespace {

using base::dumpJson;
using base::Json;

std::string ratio(std::optional<double> value) {
  return value ? fmt::format("{:.3f}", *value) : "-";
}

std::string intervalText(const RowComparison& row) {
  if (!row.rate || !row.rate->interval) return "-";
  return fmt::format("{:.3f}..{:.3f}", row.rate->interval->low, row.rate->interval->high);
}

const char* whatOf(const RowComparison& row) {
  return row.too_slow ? "TOO SLOW" : differenceName(row.difference);
}

// Prints a rate with four digits, so that a reader can compute B/A from the printed rates.
std::string rateText(const Row& row, double rate) {
  if (!row.gb_per_s || !(rate > 0) || !std::isfinite(rate)) return "-";
  const int whole = static_cast<int>(std::floor(std::log10(rate))) + 1;
  return fmt::format("{:.{}f}", rate, std::clamp(4 - whole, 0, 6));
}

// Joins the two sides' texts if they differ: "local:tcp".
std::string bothOf(const std::string& a, const std::string& b) { return a == b ? a : a + ":" + b; }
std::string backendOf(const RowComparison& row) { return bothOf(row.a.backend, row.b.backend); }
std::string opOf(const RowComparison& row) {
  return bothOf(opKindName(row.a.op), opKindName(row.b.op));
}
std::string batchOf(const RowComparison& row) {
  return bothOf(fmt::to_string(row.a.batch_size), fmt::to_string(row.b.batch_size));
}

// Names a row's scheme and kind, such as "kv-paged, Llama-3.1-8B, ...". Leaves out the scheme
// `pairwise`, so that a pairwise row of plain blocks has an empty text.
std::string kindOf(const RowComparison& row) {
  std::string kind = kindText(row.a);
  if (row.a.scheme == Row{}.scheme) return kind;
  return row.a.scheme + (kind.empty() ? "" : ", " + kind);
}

constexpr std::array kColumns{base::words("backend", base::Narrow::kHeading),
                              base::words("op", base::Narrow::kHeading),
                              base::figure("block"),
                              base::figure("batch", base::Narrow::kHeading),
                              base::words("row", base::Narrow::kHeading),
                              base::figure("A GB/s"),
                              base::figure("B GB/s"),
                              base::figure("B/A"),
                              base::figure("95 % interval"),
                              base::figure("effect"),
                              base::figure("p50 B/A"),
                              base::figure("p99 B/A"),
                              base::words("B is", base::Narrow::kBelow)};

base::TextRow textRowOf(const RowComparison& row) {
  const auto& rate = row.rate;
  return {.cells = {backendOf(row), opOf(row), base::showSize(row.a.block_size), batchOf(row),
                    kindOf(row), rateText(row.a, row.a_gb_per_s), rateText(row.b, row.b_gb_per_s),
                    ratio(rate ? std::optional(rate->ratio) : std::nullopt), intervalText(row),
                    rate && rate->interval ? fmt::format("{:+.2f}", rate->effect) : "-",
                    ratio(row.p50), ratio(row.p99), whatOf(row)},
          .after = row.note.empty() ? "" : note("^ " + row.note)};
}

// Rows with a kind get headings at any width, because the text of a kind is long.
std::string tableOf(const std::vector<RowComparison>& rows, std::size_t width) {
  constexpr std::size_t kLongest = 80, kKind = 4;  // kKind: index of the kind's column
  std::vector columns(kColumns.begin(), kColumns.end());
  std::vector<base::TextRow> lines = base::mapped(rows, textRowOf);
  const auto has_kind = [](const base::TextRow& line) { return !line.cells[kKind].empty(); };
  if (std::ranges::any_of(lines, has_kind))
    return base::tableText(columns, lines, std::min(width, kLongest));
  columns.erase(columns.begin() + kKind);
  for (base::TextRow& line : lines) line.cells.erase(line.cells.begin() + kKind);
  return base::tableText(columns, lines, width);
}

std::size_t countOf(const Comparison& comparison, Difference difference) {
  return static_cast<std::size_t>(
      std::count_if(comparison.rows.begin(), comparison.rows.end(),
                    [&](const RowComparison& row) { return row.difference == difference; }));
}

std::string summary(const Comparison& comparison) {
  std::string out = counted(comparison.rows.size(), "row") + ":";
  const char* comma = "";
  for (const auto& [word, difference] : kDifferences)
    if (const auto count = countOf(comparison, difference); count != 0) {
      out += fmt::format("{} {} {}", comma, count, word);
      comma = ",";
    }
  return out + "\n";
}

std::string slownessText(const Comparison& comparison, double allowed) {
  std::string slow, unknown, broken;
  for (const RowComparison& row : comparison.rows) {
    const std::string line = wrapped(nameOf(row), 2);
    if (row.too_slow) slow += line;
    if (row.perhaps_slow) unknown += line;
    if (isBroken(row)) broken += line;
  }
  std::string out;
  const double percent = allowed * 100;
  if (!slow.empty())
    out += fmt::format("TOO SLOW, by more than {:.3g} % with 95 % confidence:\n{}", percent, slow);
  if (!broken.empty()) out += fmt::format("BROKEN, valid in A but not in B:\n{}", broken);
  if (!unknown.empty())
    out += wrapped(fmt::format("cannot tell whether slower by more than {:.3g} %: the noise is too "
                               "large; measure longer or more often:",
                               percent),
                   0) +
           unknown;
  if (!out.empty() || comparison.evidence != SampleEvidence::kEnough) return out;
  return fmt::format("no row is slower by more than {:.3g} %\n", percent);
}

std::string linesOf(const char* title, const std::vector<std::string>& lines) {
  std::string out;
  for (const std::string& line : lines) out += fmt::format("{}{}\n", title, line);
  return out;
}

Json asJson(const RowComparison& row) {
  Json out{{"backend", row.a.backend},         {"backend_b", row.b.backend},
           {"op", opKindName(row.a.op)},       {"op_b", opKindName(row.b.op)},
           {"scheme", row.a.scheme},           {"kind", kindText(row.a)},
           {"block_size", row.a.block_size},   {"batch_size", row.a.batch_size},
           {"batch_size_b", row.b.batch_size}, {"difference", differenceName(row.difference)},
           {"too_slow", row.too_slow},         {"cannot_tell", row.perhaps_slow}};
  if (row.a.gb_per_s) out["a_gb_per_s"] = row.a_gb_per_s;
  if (row.b.gb_per_s) out["b_gb_per_s"] = row.b_gb_per_s;
  if (row.rate) {
    out["ratio"] = row.rate->ratio;
    if (row.rate->interval) {
      out["effect"] = row.rate->effect;
      out["interval_95"] = {row.rate->interval->low, row.rate->interval->high};
    }
  }
  if (row.p50) out["p50_ratio"] = *row.p50;
  if (row.p99) out["p99_ratio"] = *row.p99;
  if (!row.note.empty()) out["note"] = row.note;
  return out;
}

std::string fewRunsText(const Comparison& comparison, bool planned_together) {
  const std::string counts = fmt::format("A has {} and B {}", comparison.runs_a, comparison.runs_b);
  if (planned_together)
    return wrapped(
        fmt::format(
            "Not enough runs, because the comparison ended early: {}, and each side needs {}.",
            counts, kFewestRuns),
        0);
  return wrapped(
             fmt::format("Not enough runs: {}, and each side needs {} with the same rows. Fewer "
                         "runs cannot separate a difference from noise. Measure both sides in "
                         "turns:",
                         counts, kFewestRuns),
             0) +
         "  viaduct bench ... --against 'SETTINGS'\n"
         "  viaduct compare --before a1 a2 a3 a4 --after b1 b2 b3 b4\n";
}

constexpr auto kNoTurns =
    "The runs of A and B did not take turns, or have no start times. Drift of the machine would "
    "look like a difference. Measure A, B, B, A and so on, or accept the drift with "
    "--across-time.";

std::string evidenceText(const Comparison& comparison, bool planned_together) {
  if (comparison.evidence == SampleEvidence::kTooFewRuns)
    return fewRunsText(comparison, planned_together);
  return comparison.evidence == SampleEvidence::kNotInTurns ? wrapped(kNoTurns, 0) : "";
}

// Says how many runs are needed. Empty if the present runs are enough, or if evidenceText() says
// that they are no evidence.
std::string needText(const Comparison& comparison, const CompareOptions& options) {
  const std::size_t needed = comparison.runsNeeded();
  if (comparison.evidence != SampleEvidence::kEnough ||
      needed <= std::min(comparison.runs_a, comparison.runs_b))
    return {};
  return wrapped(
      fmt::format("With this noise, a difference of {:.3g} % needs about {} runs of each "
                  "side, or longer ones.",
                  options.seenEffect() * 100, needed),
      0);
}

}  // namespace

std::string nameOf(const RowComparison& row) {
  const std::string kind = kindOf(row);
  return fmt::format("{} {} {} x {}{}{}", backendOf(row), opOf(row), batchOf(row),
                     base::showSize(row.a.block_size), kind.empty() ? "" : ", ", kind);
}

std::string compareText(const Comparison& comparison, const ComparedFiles& files,
                        const CompareOptions& options, std::size_t width) {
  std::string out = fmt::format("A: {}\nB: {}\n", files.a, files.b);
  out += linesOf("differs: ", comparison.differing) + linesOf("counts once: ", comparison.copies);
  out += "\n" + tableOf(comparison.rows, width);
  out +=
      "\n" + linesOf("only in A: ", comparison.only_a) + linesOf("only in B: ", comparison.only_b);
  out += summary(comparison);
  out += evidenceText(comparison, options.by_place) + needText(comparison, options);
  if (options.slower) out += slownessText(comparison, *options.slower);
  return out;
}

std::string compareJson(const Comparison& comparison, const ComparedFiles& files) {
  Json rows = Json::array();
  for (const RowComparison& row : comparison.rows) rows.push_back(asJson(row));
  return dumpJson({{"format", "viaduct-compare/1"},
                   {"a", files.a},
                   {"b", files.b},
                   {"method",
                    "ratio of the medians over the runs of B and A, 95 % interval of the rank-sum "
                    "test; effect: Cliff's delta"},
                   {"differing", comparison.differing},
                   {"copies", comparison.copies},
                   {"ok", comparison.ok()},
                   {"outcome",
                    comparison.isWorse() ? "worse" : base::wordOf(kEvidences, comparison.evidence)},
                   {"runs_a", comparison.runs_a},
                   {"runs_b", comparison.runs_b},
                   {"runs_needed", comparison.runsNeeded()},
                   {"rows", std::move(rows)},
                   {"only_a", comparison.only_a},
                   {"only_b", comparison.only_b}},
                  2) +
         "\n";
}

}  // namespace viaduct::measure
