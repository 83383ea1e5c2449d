#include "measure/report/outcome.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <set>
#include <utility>

#include "base/sizes.h"
#include "measure/report/figures.h"
#include "measure/report/html.h"
#include "measure/report/marks.h"
#include "measure/report/scale.h"
#include "measure/report/suite_answers.h"
#include "measure/result/best_rate.h"
#include "measure/result/text.h"

namespace viaduct::measure {
namespace {

std::string rowName(const Source& source, const Row& row) {
  const std::string kind = kindText(row);
  return fmt::format("{}: {} {}, {}{}{} × {}", source.name, row.backend, opKindName(row.op), kind,
                     kind.empty() ? "" : ", ", row.batch_size, base::showSize(row.block_size));
}

bool isUnproven(const Row& row) { return row.verdict == Verdict::kUnproven; }
bool isBad(const Row& row) { return !isGood(row.verdict); }

std::size_t countOf(const std::vector<Source>& sources, bool (*fits)(const Row&)) {
  std::size_t out = 0;
  for (const Source& source : sources)
    out += static_cast<std::size_t>(
        std::count_if(source.report.rows.begin(), source.report.rows.end(), fits));
  return out;
}

struct Counts {
  std::size_t all, bad, unproven, good;
};
Counts countsOf(const std::vector<Source>& sources) {
  const std::size_t bad = countOf(sources, isBad), unproven = countOf(sources, isUnproven);
  const std::size_t all = countOf(sources, [](const Row&) { return true; });
  return {all, bad, unproven, all - bad - unproven};
}

// --- Pictures.

// A part of a bar. The part's width shows its count.
struct Share {
  std::size_t count = 0;
  const char* css_class = "";
  std::string words = {};  // "✓ 18 ok"
};

std::string barHtml(const std::string& name, const std::vector<Share>& shares) {
  std::string parts;
  for (const Share& share : shares)
    if (share.count != 0)
      parts += fmt::format("<span class=\"{}\" style=\"flex-grow:{}\">{}</span>", share.css_class,
                           share.count, share.words);
  if (parts.empty()) return {};
  return fmt::format("<p class=\"barname\">{}</p>\n<div class=\"bar\">{}</div>\n", escaped(name),
                     parts);
}

std::string verdictBar(const std::vector<Source>& sources) {
  const auto [all, bad, unproven, good] = countsOf(sources);
  return barHtml(counted(all, "row"), {{good, "good", fmt::format("✓ {} ok", good)},
                                       {unproven, "warn", fmt::format("? {} unproven", unproven)},
                                       {bad, "bad", fmt::format("✗ {} cannot be used", bad)}});
}

std::string answerBar(const SuiteSource& source) {
  std::map<Answer, std::size_t> counts;
  for (const SuiteAnswers& answers : answersOf(source.suite))
    if (answers.test != 0)
      for (const SuiteCell& cell : answers.cells) ++counts[cell.answer];
  std::vector<Share> shares;
  const auto add = [&](Answer answer, const char* css_class, const char* sign) {
    shares.push_back({counts[answer], css_class,
                      fmt::format("{} {} {}", sign, counts[answer], answerName(answer))});
  };
  add(Answer::kHelps, "good", "✓");
  add(Answer::kNoneSeen, "plain", "=");
  add(Answer::kIdle, "plain", "–");
  add(Answer::kTooFew, "warn", "?");
  add(Answer::kHurts, "bad", "✗");
  add(Answer::kUnusable, "bad", "✗");
  return barHtml(fmt::format("{}: answers of its tests", source.name), shares);
}

RateBar rateBar(const Series& series, std::size_t line, const Row& row) {
  std::string words =
      fmt::format("{} GB/s at {}", digits(row.gb_per_s), base::showSize(chosenSize(row)));
  if (row.ceiling)
    words += fmt::format(", {:.0f} % of {}", row.ceiling->percent, row.ceiling->name);
  return {series.label, *row.gb_per_s, std::move(words), line,
          isUnproven(row) ? " <span class=\"unsure\">? unproven</span>" : ""};
}

// Draws the best rate of each line, in the line's colour. Pairs of a matrix are only in a table.
std::string ratesHtml(const std::vector<Series>& series) {
  std::vector<RateBar> bars;
  std::size_t left_out = 0;
  for (std::size_t i = 0; i < series.size(); ++i) {
    const auto best = bestRow(series[i].rows);
    if (!best || best->as<MatrixRow>() != nullptr) continue;
    if (bars.size() == kLinesOfDrawing)
      ++left_out;
    else
      bars.push_back(rateBar(series[i], i, *best));
  }
  if (bars.empty()) return {};
  std::string out = "<p class=\"barname\">Best rates</p>\n" + barsHtml(bars);
  if (left_out != 0)
    out += fmt::format("<p class=\"small\">{} more lines are below.</p>\n", left_out);
  return out +
         "<p class=\"small\">The highest GB/s of each line, of all pairs together. The median "
         "counts for repeated rows. Rows that cannot be used do not count.</p>\n";
}

// --- Text.

std::string badList(const std::vector<Source>& sources) {
  std::string out;
  for (const Source& source : sources)
    for (const Row& row : source.report.rows)
      if (isBad(row))
        out += fmt::format("<li>{} <b>{}</b><br>{}</li>\n", verdictMark(row),
                           escaped(rowName(source, row)), escaped(row.why));
  return "<ul>\n" + out + "</ul>\n";
}

std::string whyUnproven(const Row& row) {
  if (!row.why.empty()) return row.why;
  return row.proof.empty() ? "no counter could show the path of the bytes" : row.proof;
}

using NamesByReason = std::vector<std::pair<std::string, std::vector<std::string>>>;

// Groups the names of the unproven rows by reason, in the order of the rows.
NamesByReason unprovenByReason(const std::vector<Source>& sources) {
  std::map<std::string, std::size_t> places;
  NamesByReason reasons;
  for (const Source& source : sources)
    for (const Row& row : source.report.rows) {
      if (!isUnproven(row)) continue;
      const std::string why = whyUnproven(row);
      const auto [at, fresh] = places.try_emplace(why, reasons.size());
      if (fresh) reasons.push_back({why, {}});
      std::vector<std::string>& names = reasons[at->second].second;
      const std::string name = rowName(source, row);  // repeated rows have equal names
      if (std::find(names.begin(), names.end(), name) == names.end()) names.push_back(name);
    }
  return reasons;
}

// Lists the unproven rows, grouped by reason.
std::string unprovenList(const std::vector<Source>& sources) {
  constexpr std::size_t kMost = 6;
  std::string out;
  for (auto& [why, names] : unprovenByReason(sources)) {
    const std::size_t left_out = names.size() > kMost ? names.size() - kMost : 0;
    names.resize(names.size() - left_out);
    if (left_out != 0) names.push_back(fmt::format("and {} more", left_out));
    out += fmt::format("<li><b>{}</b><br>{}</li>\n",
                       escaped(fmt::format("{}", fmt::join(names, "; "))), escaped(why));
  }
  return "<ul>\n" + out + "</ul>\n";
}

std::string earlyEnds(const std::vector<Source>& sources) {
  std::string out;
  for (const Source& source : sources)
    if (source.report.end != "complete")
      out += fmt::format("<p class=\"box warn\"><b>! Not complete:</b> {}: {}</p>\n",
                         escaped(source.name), escaped(source.report.end));
  return out;
}

// Says how many of the good rows are proven and checked.
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

std::string verdictsHtml(const std::vector<Source>& sources) {
  const auto [all, bad, unproven, good] = countsOf(sources);
  std::string out;
  if (bad != 0)
    out += fmt::format("<div class=\"box bad\"><h2>✗ {} of {} cannot be used</h2>\n{}</div>\n", bad,
                       counted(all, "row"), badList(sources));
  out += earlyEnds(sources);
  if (unproven != 0)
    out += fmt::format("<div class=\"box warn\"><h2>? {} unproven</h2>\n{}</div>\n",
                       counted(unproven, "row"), unprovenList(sources));
  if (all == 0) out += "<p class=\"box warn\"><b>! No rows:</b> nothing was measured.</p>\n";
  if (good != 0)
    out += fmt::format("<p class=\"box good\"><b>✓ {} ok.</b> {}</p>\n", counted(good, "row"),
                       goodWords(sources, good));
  return out;
}

// --- Origin of the data.

// Turns "2026-01-02T03:04:05Z" into "2026-01-02 03:04 UTC". Returns other texts unchanged.
std::string dateText(const std::string& started) {
  const bool iso = started.size() >= 17 && started[10] == 'T' && started.back() == 'Z';
  return iso ? started.substr(0, 10) + " " + started.substr(11, 5) + " UTC" : started;
}

std::string datesText(const std::vector<Source>& sources) {
  std::set<std::string> starts;
  for (const Source& source : sources)
    if (!source.report.started.empty()) starts.insert(source.report.started);
  if (starts.empty()) return "Date unknown";
  const std::string first = dateText(*starts.begin()), last = dateText(*starts.rbegin());
  return "Measured " + (first == last ? first : first + " to " + last);
}

}  // namespace

std::string titleOf(const std::vector<Source>& sources) {
  std::set<std::string> backends, hosts;
  for (const Source& source : sources) {
    for (const Row& row : source.report.rows)
      if (!row.backend.empty()) backends.insert(row.backend);
    for (const RunMember& member : source.report.environment.members)
      if (!member.host.hostname.empty()) hosts.insert(member.host.hostname);
  }
  std::string out = "Viaduct report";
  if (!backends.empty()) out += ": " + listed(backends, "backends");
  if (!hosts.empty()) out += " on " + listed(hosts, "hosts");
  return out;
}

std::string originHtml(const std::vector<Source>& sources) {
  std::set<std::string> versions;
  std::vector<std::string> commands;
  for (const Source& source : sources) {
    versions.insert(toolOf(source.report));
    const std::string& command = source.report.command;
    if (!command.empty() && std::find(commands.begin(), commands.end(), command) == commands.end())
      commands.push_back(command);
  }
  std::string out = fmt::format("<p class=\"sub\">{} · {}</p>\n", escaped(datesText(sources)),
                                escaped(listed(versions, "versions")));
  for (const std::string& command : commands)
    out += fmt::format("<p class=\"command\"><code>{}</code></p>\n", escaped(command));
  return out;
}

std::string outcomeHtml(const std::vector<Source>& sources, const std::vector<Series>& series,
                        const std::vector<SuiteSource>& suites) {
  std::string picture = verdictBar(sources);
  for (const SuiteSource& suite : suites) picture += answerBar(suite);
  picture += ratesHtml(series);
  if (!picture.empty()) picture = "<div class=\"outcome\">\n" + picture + "</div>\n";
  return picture + verdictsHtml(sources);
}

}  // namespace viaduct::measure
