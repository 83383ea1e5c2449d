#include "viaduct/doctor_nodes_page.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <array>
#include <numeric>
#include <string_view>
#include <utility>
#include <vector>

#include "base/text.h"
#include "measure/report/html.h"
#include "measure/report/style.h"
#include "measure/result/text.h"

namespace viaduct::app {
namespace {

using diag::Finding;
using diag::FindingGroup;
using diag::NodeDifference;
using diag::NodeResult;
using diag::Severity;

constexpr std::string_view kNodesStyle = R"CSS(
.finding { border: 1px solid var(--edge); border-left-width: 6px; border-radius: 6px; padding: .25rem .9rem .6rem; margin: 1rem 0; }
.finding.bad { border-left-color: var(--bad); }
.finding.warn { border-left-color: var(--warn); }
.finding .label { font-weight: 600; }
.finding pre { overflow-x: auto; background: var(--stripe); padding: .5rem .6rem; border-radius: 4px; margin: .25rem 0; }
.finding pre code { overflow-wrap: normal; }
.finding details summary, .plain summary { font-size: .9rem; font-weight: 400; margin: .35rem 0; }
.names { overflow-wrap: anywhere; font-size: .9rem; }
.words .names { font-size: 1em; }
)CSS";

std::string_view colourOf(Severity severity) {
  switch (severity) {
    case Severity::kFailure:
      return "bad";
    case Severity::kWarning:
    case Severity::kUnknown:
      return "warn";
    case Severity::kInfo:
      return "plain";
  }
  return "plain";
}

std::size_t countOf(const NodeResult& node, Severity severity) {
  if (!node.diagnosis) return 0;
  return static_cast<std::size_t>(
      std::ranges::count(node.diagnosis->findings.all(), severity, &Finding::severity));
}

// Up to this number, names are visible. A longer list is folded until the reader opens it.
constexpr std::size_t kShownNames = 6;

std::string namesHtml(std::span<const std::size_t> some, std::span<const NodeResult> nodes) {
  const std::string names = measure::escaped(namesOf(some, nodes));
  if (some.size() <= kShownNames) return fmt::format("<span class=\"names\">{}</span>", names);
  return fmt::format(
      "<details class=\"plain\"><summary>{}</summary><span class=\"names\">{}</span></details>",
      measure::counted(some.size(), "node"), names);
}

std::string labelledHtml(std::string_view label, const std::string& text) {
  if (text.empty()) return {};
  return fmt::format("<p><span class=\"label\">{}:</span> {}</p>\n", label, measure::escaped(text));
}

// The parts of a finding below its first sentence. The evidence is that of one node.
std::string detailsHtml(const Finding& finding, const std::string& node) {
  std::string out = labelledHtml("Cause", finding.cause);
  if (!finding.fix.empty())
    out += fmt::format("<p class=\"label\">Fix:</p>\n<pre tabindex=\"0\"><code>{}</code></pre>\n",
                       measure::escaped(finding.fix));
  out += labelledHtml("Gain", finding.gain);
  if (finding.evidence.empty()) return out;
  out += fmt::format("<details><summary>Seen on {}</summary>\n<ul>\n", measure::escaped(node));
  for (const diag::Evidence& one : finding.evidence)
    out += fmt::format("<li><code>{}: {}</code></li>\n", measure::escaped(one.source),
                       measure::escaped(one.value));
  return out + "</ul>\n</details>\n";
}

std::string variantHtml(const diag::SameFinding& variant, std::span<const NodeResult> nodes) {
  return fmt::format("<p>{}</p>\n{}\n", measure::escaped(variant.finding.what),
                     namesHtml(variant.nodes, nodes)) +
         detailsHtml(variant.finding, nodes[variant.nodes.front()].name);
}

// Shows the most frequent variant of a finding. Other variants with the same code are folded.
std::string groupHtml(const FindingGroup& group, std::span<const NodeResult> nodes) {
  const std::string_view colour = colourOf(group.severity);
  std::string out = fmt::format(
      "<article class=\"finding {}\">\n<h3><strong class=\"{}\">{}</strong> {}: {}</h3>\n", colour,
      colour, base::upper(severityName(group.severity)),
      measure::escaped(nodesWords(group.nodes.size(), nodes.size())), measure::escaped(group.code));
  out += variantHtml(group.variants.front(), nodes);
  if (group.variants.size() > 1) {
    out += fmt::format("<details><summary>{} in other words</summary>\n",
                       measure::counted(group.variants.size() - 1, "finding"));
    for (std::size_t i = 1; i < group.variants.size(); ++i)
      out += "<hr>\n" + variantHtml(group.variants[i], nodes);
    out += "</details>\n";
  }
  return out + "</article>\n";
}

std::string silentHtml(std::span<const NodeResult> nodes) {
  std::string list;
  std::size_t count = 0;
  for (const NodeResult& one : nodes) {
    if (one.diagnosis) continue;
    ++count;
    list += fmt::format("<li><strong>{}</strong>: {}</li>\n", measure::escaped(one.name),
                        measure::escaped(one.silence));
  }
  if (count == 0) return {};
  return fmt::format(
      "<div class=\"box bad\" id=\"silent\">\n<h2>No answer from {}</h2>\n<ul>\n{}</ul>\n</div>\n",
      measure::escaped(nodesWords(count, nodes.size())), list);
}

std::string findingsHtml(std::span<const FindingGroup> groups, std::span<const NodeResult> nodes) {
  std::string out, infos;
  for (const FindingGroup& group : groups)
    (group.severity == Severity::kInfo ? infos : out) += groupHtml(group, nodes);
  if (out.empty()) out = "<p>No node has a failure or a warning.</p>\n";
  if (!infos.empty())
    out += "<details><summary><h2>Worth knowing</h2></summary>\n" + infos + "</details>\n";
  return out;
}

std::string differencesHtml(std::span<const NodeResult> nodes) {
  measure::HtmlTable table{
      .caption =
          "The most frequent value of a fact comes first; where only a few nodes differ, look "
          "at these.",
      .columns = {"fact", "nodes", "value", "which"}};
  for (const NodeDifference& one : diag::differencesOf(nodes))
    for (std::size_t i = 0; i < one.values.size(); ++i) {
      const auto& [value, some] = one.values[i];
      table.rows.push_back(
          {measure::headCell(i == 0 ? one.item : ""),
           measure::numberCell(std::to_string(some.size())),
           {.html = fmt::format("<div class=\"words\">{}</div>",
                                measure::escaped(value.value_or("(none)")))},
           {.html = fmt::format("<div class=\"words\">{}</div>", namesHtml(some, nodes))}});
    }
  return table.rows.empty() ? "<p>All nodes that answered have the same facts.</p>\n"
                            : measure::tableHtml(table);
}

// A node without an answer comes first. Others come by their failures, then by their warnings.
std::string nodesHtml(std::span<const NodeResult> nodes) {
  std::vector<std::size_t> order(nodes.size());
  std::iota(order.begin(), order.end(), std::size_t{0});
  const auto badness = [&](std::size_t i) {
    return std::tuple(!nodes[i].diagnosis, countOf(nodes[i], Severity::kFailure),
                      countOf(nodes[i], Severity::kWarning), countOf(nodes[i], Severity::kUnknown));
  };
  std::ranges::stable_sort(order,
                           [&](std::size_t a, std::size_t b) { return badness(a) > badness(b); });
  measure::HtmlTable table{.caption = "Findings of each node, the worst first.",
                           .columns = {"node", "failures", "warnings", "unknown", "kernel"}};
  for (const std::size_t i : order) {
    const NodeResult& one = nodes[i];
    const auto count = [&](Severity severity) {
      return measure::numberCell(one.diagnosis ? std::to_string(countOf(one, severity))
                                               : std::string(measure::kNothing));
    };
    table.rows.push_back(
        {measure::headCell(one.name), count(Severity::kFailure), count(Severity::kWarning),
         count(Severity::kUnknown),
         measure::textCell(one.diagnosis ? one.diagnosis->node.kernel : "no answer")});
  }
  return measure::tableHtml(table);
}

std::string section(std::string_view id, std::string_view title, const std::string& html) {
  return fmt::format("<section aria-labelledby=\"{0}\">\n<h2 id=\"{0}\">{1}</h2>\n{2}</section>\n",
                     id, title, html);
}

}  // namespace

std::string nodesWords(std::size_t some, std::size_t all) {
  if (all == 1) return "the node";
  return fmt::format("{} of {} nodes", some, all);
}

std::string namesOf(std::span<const std::size_t> some, std::span<const NodeResult> nodes) {
  std::vector<std::string_view> names;
  for (const std::size_t i : some) names.push_back(nodes[i].name);
  return fmt::format("{}", fmt::join(names, ", "));
}

std::string nodesVerdict(std::span<const NodeResult> nodes) {
  std::size_t failures = 0, warnings = 0, silent = 0;
  for (const NodeResult& one : nodes) {
    const Severity worst = one.diagnosis ? one.diagnosis->findings.worst() : Severity::kInfo;
    silent += one.diagnosis ? 0 : 1;
    failures += worst == Severity::kFailure ? 1 : 0;
    warnings += worst == Severity::kWarning || worst == Severity::kUnknown ? 1 : 0;
  }
  std::vector<std::string> parts;
  if (failures > 0) parts.push_back(fmt::format("{} with failures", failures));
  if (warnings > 0) parts.push_back(fmt::format("{} with warnings only", warnings));
  if (silent > 0) parts.push_back(fmt::format("{} without an answer", silent));
  if (parts.empty()) parts.emplace_back("no fault found");
  return fmt::format("{}: {}", measure::counted(nodes.size(), "node"), fmt::join(parts, ", "));
}

std::string nodesPage(std::span<const NodeResult> nodes) {
  const std::string heading = measure::escaped(nodesVerdict(nodes));
  const std::vector<FindingGroup> groups = diag::groupsOf(nodes);
  return measure::pageHead(heading, kNodesStyle) + fmt::format("<header>\n<h1>{}</h1>\n", heading) +
         silentHtml(nodes) +
         "<nav aria-label=\"Sections\"><ul>\n<li><a href=\"#findings\">Findings</a></li>\n"
         "<li><a href=\"#differences\">Differences</a></li>\n"
         "<li><a href=\"#nodes\">Nodes</a></li>\n</ul></nav>\n</header>\n<main>\n" +
         section("findings", "Findings", findingsHtml(groups, nodes)) +
         section("differences", "Differences between the nodes", differencesHtml(nodes)) +
         section("nodes", "Nodes", nodesHtml(nodes)) +
         fmt::format(
             "</main>\n<footer>Made by viaduct {}. Each finding has the evidence of one of its "
             "nodes; <code>viaduct doctor</code> on a node shows its own.</footer>\n</body>\n"
             "</html>\n",
             VIADUCT_VERSION);
}

}  // namespace viaduct::app
