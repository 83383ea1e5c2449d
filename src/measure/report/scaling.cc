#include "measure/report/scaling.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <set>

#include "base/sizes.h"
#include "measure/report/scale.h"
#include "measure/result/statistics.h"
#include "measure/result/text.h"

namespace viaduct::measure {
namespace {

// The rates of all runs, by number of members.
using Rates = std::map<std::uint32_t, std::vector<double>>;
using Blocks = std::map<std::uint64_t, Rates>;

// In a pattern each member both sends and receives, so initiators and targets are the same members.
std::uint32_t membersOf(const Row& row) {
  return row.as<Operation>() != nullptr ? row.initiators : row.initiators + row.targets;
}

// Groups rates by Series::work, then block size, then number of members, over all files.
std::map<std::string, Blocks> kindsOf(const std::vector<Series>& series) {
  std::map<std::string, Blocks> out;
  for (const Series& one : series)
    for (const Row& row : one.rows)
      if (isGood(row.verdict) && row.gb_per_s.value_or(0) > 0)
        out[one.work][chosenSize(row)][membersOf(row)].push_back(*row.gb_per_s);
  return out;
}

double efficiency(const Rates& rates, std::uint32_t members) {
  const auto per_member = [&](std::uint32_t m) { return median(rates.at(m)) / m; };
  return per_member(members) / per_member(rates.begin()->first) * 100;
}

// Returns the block size that was measured with the most different numbers of members; if several
// were, the largest.
Blocks::const_iterator best(const Blocks& blocks) {
  auto out = blocks.begin();
  for (auto at = blocks.begin(); at != blocks.end(); ++at)
    if (at->second.size() >= out->second.size()) out = at;
  return out;
}

ChartLine lineOf(const std::string& kind, const Blocks& blocks) {
  const auto [size, rates] = *best(blocks);
  ChartLine out{.label = fmt::format("{}, {}", kind, base::showSize(size))};
  for (const auto& [members, values] : rates)
    out.points.push_back({.x = static_cast<double>(members),
                          .y = efficiency(rates, members),
                          .tip = fmt::format("{}, {} members: {} GB/s, {:.0f} %", kind, members,
                                             digits(median(values)), efficiency(rates, members))});
  return out;
}

void addRows(HtmlTable& table, const std::string& kind, const Blocks& blocks,
             const std::set<std::uint32_t>& counts) {
  for (const auto& [size, rates] : blocks) {
    if (rates.size() < 2) continue;
    std::vector<Cell> cells{headCell(kind), numberCell(base::showSize(size))};
    for (const std::uint32_t members : counts) {
      const auto at = rates.find(members);
      cells.push_back(at == rates.end() ? numberCell("")
                                        : Cell{.html = fmt::format("{} <small>{:.0f} %</small>",
                                                                   digits(median(at->second)),
                                                                   efficiency(rates, members)),
                                               .number = true});
    }
    table.rows.push_back(std::move(cells));
  }
}

}  // namespace

Figure scalingFigure(const std::vector<Series>& series) {
  Figure out{.chart = {.id = "scaling",
                       .title = "Scaling efficiency over members",
                       .note = "GB/s per member (process), as a percentage of the rate with the "
                               "fewest members; 100 % is perfect scaling. The chart shows the "
                               "largest block size among those with the most member counts.",
                       .x_title = "members",
                       .y_title = "efficiency",
                       .x_axis = XAxis::kMembers,
                       .y_axis = YAxis::kPercent},
             .table = {.caption = "GB/s of all members together, and efficiency, by members",
                       .columns = {"what", "block size"}}};
  auto kinds = kindsOf(series);
  std::erase_if(kinds, [](const auto& kind) { return best(kind.second)->second.size() < 2; });
  std::set<std::uint32_t> counts;
  for (const auto& [kind, blocks] : kinds)
    for (const auto& [size, rates] : blocks)
      for (const auto& [members, values] : rates) counts.insert(members);
  for (const std::uint32_t count : counts)
    out.table.columns.push_back(fmt::format("{} members", count));
  for (const auto& [kind, blocks] : kinds) {
    out.chart.lines.push_back(lineOf(kind, blocks));
    addRows(out.table, kind, blocks, counts);
  }
  return out;
}

}  // namespace viaduct::measure
