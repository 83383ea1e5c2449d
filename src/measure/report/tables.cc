#include "measure/report/tables.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <set>

#include "base/sizes.h"
#include "measure/report/figures.h"
#include "measure/report/html.h"
#include "measure/report/scale.h"
#include "measure/result/text.h"

namespace viaduct::measure {
namespace {

std::string rowName(const Source& source, const Row& row) {
  return fmt::format("{}: {} {}, {} × {}", source.name, row.backend, opKindName(row.op),
                     row.batch_size, sizeLabel(static_cast<double>(row.block_size)));
}

std::size_t countOf(const std::vector<Source>& sources, bool (*fits)(const Row&)) {
  std::size_t out = 0;
  for (const Source& source : sources)
    out += static_cast<std::size_t>(
        std::count_if(source.report.rows.begin(), source.report.rows.end(), fits));
  return out;
}

std::string badList(const std::vector<Source>& sources) {
  std::string out;
  for (const Source& source : sources)
    for (const Row& row : source.report.rows)
      if (!isGood(row.verdict))
        out += fmt::format("<li>{} <b>{}</b><br>{}</li>\n", verdictMark(row),
                           escaped(rowName(source, row)), escaped(row.why));
  return out.empty() ? out : "<ul>\n" + out + "</ul>\n";
}

std::string earlyEnds(const std::vector<Source>& sources) {
  std::string out;
  for (const Source& source : sources)
    if (source.report.end != "complete")
      out += fmt::format("<p class=\"box warn\"><b>! Not complete:</b> {}: {}</p>\n",
                         escaped(source.name), escaped(source.report.end));
  return out;
}

std::string plural(std::size_t count, const char* one) {
  return fmt::format("{} {}{}", count, one, count == 1 ? "" : "s");
}

// How far "ok" goes.
std::string goodWords(const std::vector<Source>& sources, std::size_t good) {
  const std::size_t proven = countOf(sources, [](const Row& row) {
    return row.verdict == Verdict::kOk && !row.path.empty() &&
           std::all_of(row.path.begin(), row.path.end(),
                       [](const ProvenShare& s) { return s.proven == Proven::kYes; });
  });
  const std::size_t checked = countOf(sources, [](const Row& row) {
    return row.verdict == Verdict::kOk && row.verified != Verified::kOff;
  });
  const auto part = [&](std::size_t count) {
    return count == good ? std::string("all") : count == 0 ? "none" : fmt::to_string(count);
  };
  return fmt::format("Path proven: {}. Contents checked: {}.", part(proven), part(checked));
}

std::string bestOf(const Report& report) {
  std::map<std::string, double> best;
  for (const Row& row : report.rows)
    if (isGood(row.verdict) && row.gb_per_s)
      best[row.backend] = std::max(best[row.backend], *row.gb_per_s);
  std::string out;
  for (const auto& [backend, rate] : best)
    out += fmt::format("{}{} {}", out.empty() ? "" : ", ", backend, digits(rate));
  return out;
}

std::string hostsOf(const Report& report) {
  std::set<std::string> names;
  for (const Member& member : report.environment.members) names.insert(member.host.hostname);
  return names.size() > 3 ? fmt::format("{} hosts", names.size())
                          : fmt::format("{}", fmt::join(names, ", "));
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
  return part ? fmt::format("{:.0f} %", *part) : std::string(kNothing);
}

std::string pathOf(const Row& row) {
  std::string words = pathWords(row);
  if (row.proof.empty()) return words;
  return words.empty() ? row.proof : words + ": " + row.proof;
}

std::vector<Cell> rowCells(const Source& source, const Row& row) {
  std::string ceiling = std::string(kNothing);
  if (row.ceiling) ceiling = fmt::format("{:.0f} % of {}", row.ceiling->percent, row.ceiling->name);
  return {headCell(source.name),
          textCell(row.backend),
          textCell(opKindName(row.op)),
          textCell(fmt::format("{} {}→{}{}", row.scheme, row.initiators, row.targets,
                               row.bidirectional ? ", both ways" : "")),
          numberCell(sizeLabel(static_cast<double>(row.block_size))),
          numberCell(fmt::to_string(row.batch_size)),
          figureCell(row.gb_per_s),
          numberCell(percentText(row.gb_per_s_spread ? std::optional(*row.gb_per_s_spread * 100)
                                                     : std::nullopt)),
          textCell(ceiling),
          quantile(row, &Latency::p50),
          figureCell(row.latency_us ? row.latency_us->p95 : std::nullopt),
          quantile(row, &Latency::p99),
          quantile(row, &Latency::p99_9),
          quantile(row, &Latency::max),
          times(row.prep_us),
          times(row.post_us),
          times(row.tx_us),
          figureCell(row.cpu_s_per_gb),
          figureCell(row.completions_per_s),
          {.html = "<div class=\"path\">" + escaped(pathOf(row)) + "</div>"},
          textCell(verifiedName(row.verified)),
          verdictCell(row)};
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

// Members of one host are one line.
std::vector<std::vector<Cell>> hostRows(const Source& source) {
  std::vector<std::pair<host::Facts, std::string>> hosts;
  for (const Member& member : source.report.environment.members) {
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
                   numberCell(base::showSize(host.memory)), textCell(host.kernel),
                   textCell(interfacesOf(host)), textCell(source.report.environment.fingerprint)});
  return out;
}

using Values = std::map<std::string, std::vector<std::string>>;  // by option: of each source

void addOptions(Values& to, std::size_t source, std::size_t sources, const std::string& front,
                const std::vector<Option>& options) {
  for (const Option& option : options) {
    auto& values = to[front + option.name];
    values.resize(sources);
    values[source] = option.value;
  }
}

}  // namespace

std::string verdictsHtml(const std::vector<Source>& sources) {
  const std::size_t all = countOf(sources, [](const Row&) { return true; });
  const std::size_t bad = countOf(sources, [](const Row& row) { return !isGood(row.verdict); });
  const std::size_t unsure =
      countOf(sources, [](const Row& row) { return row.verdict == Verdict::kUnproven; });
  std::string out;
  if (bad != 0)
    out += fmt::format("<div class=\"box bad\"><h2>✗ {} of {} cannot be used</h2>\n{}</div>\n", bad,
                       plural(all, "row"), badList(sources));
  out += earlyEnds(sources);
  if (unsure != 0)
    out += fmt::format(
        "<p class=\"box warn\"><b>? {} unproven:</b> nobody could look which path the bytes "
        "took.</p>\n",
        plural(unsure, "row"));
  if (all == 0) out += "<p class=\"box warn\"><b>! No rows:</b> nothing was measured.</p>\n";
  if (const std::size_t good = all - bad - unsure; good != 0)
    out += fmt::format("<p class=\"box good\"><b>✓ {} ok.</b> {}</p>\n", plural(good, "row"),
                       goodWords(sources, good));
  return out;
}

std::string runsHtml(const std::vector<Source>& sources) {
  Table table{.caption = "Runs",
              .columns = {"file", "by", "started", "hosts", "members", "rows", "best GB/s", "end"}};
  for (const Source& source : sources) {
    const Report& r = source.report;
    const bool ours = r.version != "nixlbench";
    table.rows.push_back(
        {headCell(source.name), textCell((ours ? "viaduct " : "") + r.version), textCell(r.started),
         textCell(hostsOf(r)),
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
  Table table{.caption = "All rows; prep, post and tx: mean / p99",
              .columns = {"file",     "backend", "op",      "scheme",  "block",  "batch",
                          "GB/s",     "±",       "ceiling", "p50 µs",  "p95 µs", "p99 µs",
                          "p99.9 µs", "max µs",  "prep µs", "post µs", "tx µs",  "CPU s/GB",
                          "ends/s",   "path",    "checked", "verdict"}};
  for (const Source& source : sources)
    for (const Row& row : source.report.rows) table.rows.push_back(rowCells(source, row));
  return tableHtml(withoutEmptyColumns(table));
}

std::string environmentHtml(const std::vector<Source>& sources) {
  Table table{.caption = "Machines",
              .columns = {"file", "host", "members", "CPU", "cores", "memory", "kernel",
                          "interfaces that are up", "fingerprint"}};
  for (const Source& source : sources)
    for (auto& row : hostRows(source)) table.rows.push_back(std::move(row));
  return table.rows.empty() ? "<p>No file says on which machine it was measured.</p>\n"
                            : tableHtml(table);
}

std::string settingsHtml(const std::vector<Source>& sources) {
  Values values;
  for (std::size_t i = 0; i < sources.size(); ++i) {
    addOptions(values, i, sources.size(), "", sources[i].report.settings);
    addOptions(values, i, sources.size(), "agent.", sources[i].report.agent);
  }
  Table table{.caption = "Settings; ≠ marks what differs", .columns = {"setting"}};
  for (const Source& source : sources) table.columns.push_back(source.name);
  for (const auto& one : values) {
    const auto& name = one.first;
    const auto& of_each = one.second;
    const bool same = std::all_of(of_each.begin(), of_each.end(),
                                  [&](const std::string& v) { return v == of_each.front(); });
    std::vector<Cell> cells{headCell((same ? "" : "≠ ") + name)};
    for (const std::string& value : of_each)
      cells.push_back(same ? textCell(value) : Cell{.html = "<b>" + escaped(value) + "</b>"});
    table.rows.push_back(std::move(cells));
  }
  return table.rows.empty() ? std::string{} : tableHtml(table);
}

}  // namespace viaduct::measure
