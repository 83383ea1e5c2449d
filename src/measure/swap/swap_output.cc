#include "measure/swap/swap_output.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <optional>
#include <vector>

#include "base/json.h"
#include "base/sizes.h"
#include "base/text_table.h"
#include "measure/result/text.h"
#include "measure/stats/statistics.h"

namespace viaduct::measure::swap {
namespace {

using base::Json;

// Returns how many times faster than the baseline the way is.
std::optional<double> timesBaseline(const CaseResult& one, Way way) {
  const auto baseline = middle(one[Way::kOneCall].gb_per_s), rate = middle(one[way].gb_per_s);
  return baseline && rate && *baseline > 0 ? std::optional(*rate / *baseline) : std::nullopt;
}

const char* hostWords(const SwapResult& result) {
  return result.pinned() ? "pinned host memory" : "host memory that is not pinned";
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

std::vector<std::string> cellsOf(const CaseResult& one, Way way) {
  const WayResult& of = one[way];
  const auto& rates = of.gb_per_s;
  return base::cells(base::showSize(one.of.block_bytes), directionName(one.of.direction),
                     orderName(one.of.order), wayName(way), digits(middle(rates)),
                     percent(rates.empty() ? std::nullopt : std::optional(spread(rates))),
                     ofMax(of.ceiling), digits(timesBaseline(one, way)), digits(middle(of.plan_us)),
                     of.copied_by);
}

// The ceilings that rows have reached in part, and the reasons of those that are unknown; each
// once.
std::string ceilingsText(const std::vector<CaseResult>& cases) {
  std::vector<std::string> lines;
  for (const CaseResult& one : cases) {
    if (!one.ceiling_unknown.empty())
      lines.push_back(fmt::format("ceiling of {}: not measured: {}\n",
                                  directionName(one.of.direction), one.ceiling_unknown));
    for (const WayResult& way : one.ways)
      if (way.ceiling)
        lines.push_back(fmt::format("ceiling: {}, {} GB/s\n", way.ceiling->name,
                                    digits(way.ceiling->gb_per_s)));
  }
  std::ranges::sort(lines);
  lines.erase(std::unique(lines.begin(), lines.end()), lines.end());
  std::string out;
  for (const std::string& line : lines) out += line;
  return out;
}

Json jsonOf(const CaseResult& one, Way way) {
  const WayResult& of = one[way];
  Json out{{"direction", directionName(one.of.direction)},
           {"order", orderName(one.of.order)},
           {"block_size", one.of.block_bytes},
           {"way", wayName(way)},
           {"path", of.path},
           {"copied_by", of.copied_by},
           {"gb_per_s_rounds", of.gb_per_s},
           {"guard_bytes", one.guard_bytes},
           {"verdict", one.wrong.empty() ? "ok" : "corrupt"}};
  if (const auto rate = middle(of.gb_per_s)) {
    out["gb_per_s"] = *rate;
    out["gb_per_s_spread"] = spread(of.gb_per_s);
  }
  if (const auto times = timesBaseline(one, way)) out["times_baseline"] = *times;
  if (const auto plan = middle(of.plan_us)) out["plan_us"] = *plan;
  if (of.ceiling)
    out["ceiling"] = {{"name", of.ceiling->name},
                      {"gb_per_s", of.ceiling->gb_per_s},
                      {"percent", of.ceiling->percent}};
  if (!one.ceiling_unknown.empty()) out["ceiling_unknown"] = one.ceiling_unknown;
  if (!one.wrong.empty()) out["why"] = one.wrong;
  return out;
}

}  // namespace

std::string swapText(const SwapReport& report, std::size_t width) {
  const SwapResult& result = report.result;
  if (result.cases.empty()) return {};
  std::string out = fmt::format("swap between {} and {}\n{} a copy, each way in {} in turns{}\n\n",
                                hostWords(result), result.gpu, counted(report.blocks, "block"),
                                counted(report.rounds, "round"),
                                report.end == "complete" ? "" : ", " + report.end);
  std::vector<base::TextRow> rows;
  for (const CaseResult& one : result.cases) {
    rows.push_back({.cells = cellsOf(one, Way::kViaduct)});
    rows.push_back({.cells = cellsOf(one, Way::kOneCall),
                    .after = one.wrong.empty() ? "" : note("^ CORRUPT: " + one.wrong)});
  }
  out += base::tableText(kColumns, rows, width) + "\n" + ceilingsText(result.cases);
  const bool good = result.good();
  return out + (good ? "every byte of the blocks and of the guard blocks was checked\n"
                     : "bytes of blocks or guard blocks are wrong\n");
}

std::string swapJson(const SwapReport& report) {
  Json members = Json::array(), rows = Json::array();
  for (const RunMember& one : report.members)
    members.push_back({{"rank", one.rank}, {"name", one.name}, {"hostname", one.host.hostname}});
  for (const CaseResult& one : report.result.cases)
    for (const Way way : {Way::kViaduct, Way::kOneCall}) rows.push_back(jsonOf(one, way));
  return base::dumpJson({{"format", "viaduct-swap/1"},
                         {"version", report.version},
                         {"started", report.started},
                         {"end", report.end},
                         {"command", report.command},
                         {"gpu", report.result.gpu},
                         {"memory", hostWords(report.result)},
                         {"blocks", report.blocks},
                         {"rounds", report.rounds},
                         {"members", std::move(members)},
                         {"rows", std::move(rows)}},
                        2);
}

}  // namespace viaduct::measure::swap
