#include "measure/report/tables.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <set>

#include "base/sizes.h"
#include "measure/report/figures.h"
#include "measure/report/html.h"
#include "measure/result/best_rate.h"
#include "measure/result/text.h"

namespace viaduct::measure {
namespace {

// Returns the best rate of each backend.
std::string bestOf(const Report& report) {
  std::map<std::string, std::vector<Row>> backends;
  for (const Row& row : report.rows) backends[row.backend].push_back(row);
  std::string out;
  for (const auto& [backend, rows] : backends)
    if (const auto best = bestRow(rows))
      out += fmt::format("{}{} {}", out.empty() ? "" : ", ", backend, digits(best->gb_per_s));
  return out;
}

std::string hostsOf(const Report& report) {
  std::set<std::string> names;
  for (const RunMember& member : report.environment.members) names.insert(member.host.hostname);
  return listed(names, "hosts");
}

Cell verdictCell(const Row& row) {
  if (!isGood(row.verdict)) return {.html = verdictMark(row)};
  if (row.verdict == Verdict::kUnproven)
    return {.html = "<span class=\"unsure\">? unproven</span>"};
  return {.html = "<span class=\"good\">✓ ok</span>"};
}

Cell quantile(const Row& row, double Latency::* which) {
  return numberCell(row.latency_us ? digits((*row.latency_us).*which) : std::string(kNothing));
}

Cell times(const std::optional<MeanP99>& us) {
  return numberCell(us ? digits(us->mean) + " / " + digits(us->p99) : std::string(kNothing));
}

std::string percentText(const std::optional<double>& part) {
  return part ? fmt::format("{:.0f}\u00a0%", *part) : std::string(kNothing);
}

// The properties of rows besides their blocks. The caption names a property that all rows share.
class Identity {
 public:
  Identity(const std::vector<Source>& sources, const std::vector<const char*>& names,
           std::vector<std::string> (*facts)(const Source&, const Row&))
      : names_(names.begin(), names.end()), facts_(facts), values_(names.size()) {
    for (const Source& source : sources)
      for (const Row& row : source.report.rows) {
        const auto all = facts_(source, row);
        for (std::size_t i = 0; i < all.size(); ++i) values_[i].insert(all[i]);
      }
  }

  std::string caption(std::string out) const {
    for (std::size_t i = 0; i < names_.size(); ++i)
      if (values_[i].size() == 1 && !values_[i].begin()->empty())
        out += fmt::format("; {}: {}", names_[i], *values_[i].begin());
    return out;
  }
  void addColumns(std::vector<std::string>& to) const {
    for (std::size_t i = 0; i < names_.size(); ++i)
      if (values_[i].size() > 1) to.push_back(names_[i]);
  }
  void addCells(const Source& source, const Row& row, std::vector<Cell>& to) const {
    const auto all = facts_(source, row);
    for (std::size_t i = 0; i < all.size(); ++i)
      if (values_[i].size() > 1) to.push_back(textCell(all[i]));
  }

 private:
  std::vector<std::string> names_;
  std::vector<std::string> (*facts_)(const Source&, const Row&);
  std::vector<std::set<std::string>> values_;
};

// Returns a text that tells a row from the other rows of its file.
std::string whatOf(const Row& row) {
  if (const auto* const operation = row.as<Operation>()) return base::showSize(operation->size);
  const auto* const stages = row.as<PipelineRow>();
  if (stages == nullptr) return kindText(row);
  return stagesText(*stages) + (stages->run == StagesRun::kTogether ? ", the sum" : "");
}

Identity whatRowsAre(const std::vector<Source>& sources) {
  return {sources, {"file", "backend", "op", "what"}, [](const Source& source, const Row& row) {
            return std::vector<std::string>{source.name, row.backend, opKindName(row.op),
                                            whatOf(row)};
          }};
}

Identity howRowsWereDone(const std::vector<Source>& sources) {
  return {sources, {"scheme", "checked"}, [](const Source& /*source*/, const Row& row) {
            return std::vector<std::string>{
                fmt::format("{} {}→{}{}", row.scheme, row.initiators, row.targets,
                            row.bidirectional ? ", both ways" : ""),
                verifiedName(row.verified)};
          }};
}

Cell blocksCell(const Row& row) {
  return headCell(fmt::format("{} × {}", row.batch_size, base::showSize(row.block_size)));
}

Cell wordsCell(const std::string& words) {
  return {.html = words.empty() ? "" : "<div class=\"words\">" + escaped(words) + "</div>"};
}

// Adds the cells that most readers look for first.
void addOutcomeCells(const Row& row, std::vector<Cell>& to) {
  to.insert(to.end(), {verdictCell(row),
                       figureCell(row.gb_per_s),
                       {.html = "<div class=\"path\">" + escaped(pathWords(row)) + "</div>"}});
}

void addLimitCells(const Row& row, std::vector<Cell>& to) {
  to.push_back(numberCell(
      percentText(row.gb_per_s_spread ? std::optional(*row.gb_per_s_spread * 100) : std::nullopt)));
  if (!row.ceiling) return to.push_back({});
  to.push_back(
      {.html = "<div class=\"limit\">" +
               escaped(fmt::format("{:.0f} % of {}", row.ceiling->percent, row.ceiling->name)) +
               "</div>"});
}

void addTimeCells(const Row& row, std::vector<Cell>& to) {
  to.insert(to.end(),
            {quantile(row, &Latency::p50),
             figureCell(row.latency_us ? row.latency_us->p95 : std::nullopt),
             figureCell(p99Of(row)), figureCell(p999Of(row)), quantile(row, &Latency::max),
             times(row.prep_us), times(row.post_us), times(row.tx_us), figureCell(row.cpu_s_per_gb),
             figureCell(row.completions_per_s)});
}

HtmlTable resultTable(const std::vector<Source>& sources) {
  const Identity what = whatRowsAre(sources), how = howRowsWereDone(sources);
  HtmlTable out{.caption = how.caption(what.caption("Rates and paths of all rows")),
                .columns = {"blocks", "verdict", "GB/s", "path"}};
  what.addColumns(out.columns);
  out.columns.insert(out.columns.end(), {"±", "ceiling"});
  how.addColumns(out.columns);
  out.columns.emplace_back("proof");
  for (const Source& source : sources)
    for (const Row& row : source.report.rows) {
      std::vector<Cell>& cells = out.rows.emplace_back(std::vector<Cell>{blocksCell(row)});
      addOutcomeCells(row, cells);
      what.addCells(source, row, cells);
      addLimitCells(row, cells);
      how.addCells(source, row, cells);
      cells.push_back({.html = "<div class=\"proof\">" + escaped(row.proof) + "</div>"});
    }
  return withoutEmptyColumns(out);
}

HtmlTable timeTable(const std::vector<Source>& sources) {
  const Identity what = whatRowsAre(sources);
  HtmlTable out{
      .caption = what.caption("Times and costs of all rows; prep, post and tx: mean / p99"),
      .columns = {"blocks"}};
  what.addColumns(out.columns);
  for (const char* name : {"p50 µs", "p95 µs", "p99 µs", "p99.9 µs", "max µs", "prep µs", "post µs",
                           "tx µs", "CPU s/GB", "ends/s"})
    out.columns.emplace_back(name);
  for (const Source& source : sources)
    for (const Row& row : source.report.rows) {
      std::vector<Cell>& cells = out.rows.emplace_back(std::vector<Cell>{blocksCell(row)});
      what.addCells(source, row, cells);
      addTimeCells(row, cells);
    }
  return withoutEmptyColumns(out);
}

std::string rateOf(const host::Interface& i) {
  if (i.mbit_per_s == 0) return i.name;
  return fmt::format("{} {:g} Gbit/s", i.name, static_cast<double>(i.mbit_per_s) / 1000);
}

std::string interfacesOf(const host::Facts& host) {
  std::string out;
  for (const host::Interface& i : host.interfaces)
    if (i.up) out += (out.empty() ? "" : ", ") + rateOf(i);
  return out;
}

// Members of one host share a line.
std::vector<std::vector<Cell>> hostRows(const Source& source) {
  std::vector<std::pair<host::Facts, std::string>> hosts;
  for (const RunMember& member : source.report.environment.members) {
    auto at = std::find_if(hosts.begin(), hosts.end(),
                           [&](const auto& known) { return known.first == member.host; });
    if (at == hosts.end()) at = hosts.insert(hosts.end(), {member.host, {}});
    at->second += fmt::format("{}{} {}", at->second.empty() ? "" : ", ", member.rank, member.role);
  }
  std::vector<std::vector<Cell>> out;
  out.reserve(hosts.size());
  for (const auto& [host, members] : hosts)
    out.push_back({headCell(source.name), textCell(host.hostname), textCell(members),
                   textCell(host.cpu_model), numberCell(fmt::to_string(host.cores)),
                   numberCell(base::roundedSize(host.memory)), textCell(host.kernel),
                   textCell(interfacesOf(host)), textCell(source.report.environment.fingerprint)});
  return out;
}

// For each option, its value in each source.
using Values = std::map<std::string, std::vector<std::string>>;

void addOptions(Values& to, std::size_t source, std::size_t sources, const std::string& front,
                const std::vector<Option>& options) {
  for (const Option& option : options) {
    auto& values = to[front + option.name];
    values.resize(sources);
    values[source] = option.value;
  }
}

}  // namespace

std::string runsHtml(const std::vector<Source>& sources) {
  HtmlTable table{
      .caption = "Runs",
      .columns = {"file", "by", "started", "hosts", "members", "rows", "best GB/s", "end"}};
  for (const Source& source : sources) {
    const Report& r = source.report;
    table.rows.push_back(
        {headCell(source.name), textCell(toolOf(r)), textCell(r.started), textCell(hostsOf(r)),
         numberCell(r.environment.members.empty() ? std::string(kNothing)
                                                  : fmt::to_string(r.environment.members.size())),
         numberCell(fmt::to_string(r.rows.size())), textCell(bestOf(r)), textCell(r.end)});
  }
  return tableHtml(table);
}

std::string conclusionsHtml(const std::vector<Source>& sources) {
  std::string out;
  for (const Source& source : sources) {
    if (source.report.conclusion.empty()) continue;
    out += fmt::format("<h3>{}</h3>\n<ul>\n", escaped(source.name));
    for (const std::string& line : source.report.conclusion)
      out += fmt::format("<li>{}</li>\n", escaped(line));
    out += "</ul>\n";
  }
  return out;
}

std::string rowsHtml(const std::vector<Source>& sources) {
  const auto empty = [](const Source& source) { return source.report.rows.empty(); };
  if (std::ranges::all_of(sources, empty)) return {};
  return tableHtml(resultTable(sources)) + tableHtml(timeTable(sources));
}

std::string environmentHtml(const std::vector<Source>& sources) {
  HtmlTable table{.caption = "Machines",
                  .columns = {"file", "host", "members", "CPU", "cores", "memory", "kernel",
                              "interfaces that are up", "fingerprint"}};
  for (const Source& source : sources)
    for (auto& row : hostRows(source)) table.rows.push_back(std::move(row));
  return table.rows.empty() ? "<p>No file names its machine.</p>\n" : tableHtml(table);
}

std::string settingsHtml(const std::vector<Source>& sources) {
  Values values;
  for (std::size_t i = 0; i < sources.size(); ++i) {
    addOptions(values, i, sources.size(), "", sources[i].report.settings);
    addOptions(values, i, sources.size(), "agent.", sources[i].report.agent);
  }
  HtmlTable same{
      .caption = sources.size() == 1 ? "Settings" : "Settings that are the same in all files",
      .columns = {"setting", "value"}};
  HtmlTable differing{.caption = "Settings that differ", .columns = {"setting"}};
  for (const Source& source : sources) differing.columns.push_back(source.name);
  for (const auto& [name, of_each] : values) {
    const std::string& first = of_each.front();
    if (std::all_of(of_each.begin(), of_each.end(), [&](const auto& v) { return v == first; })) {
      same.rows.push_back(
          {headCell(name), wordsCell(first.empty() ? std::string(kNothing) : first)});
      continue;
    }
    std::vector<Cell>& cells =
        differing.rows.emplace_back(std::vector<Cell>{headCell("≠ " + name)});
    for (const std::string& value : of_each) cells.push_back(wordsCell(value));
  }
  return (differing.rows.empty() ? std::string{} : tableHtml(differing)) +
         (same.rows.empty() ? std::string{}
                            : "<div class=\"columns\">" + tableHtml(same) + "</div>\n");
}

}  // namespace viaduct::measure
