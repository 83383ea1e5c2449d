// `viaduct doctor nodes`: the results of many nodes as one page.
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <string>
#include <utility>
#include <vector>

#include "base/replaced_file.h"
#include "base/text.h"
#include "diag/nodes.h"
#include "measure/result/result_files.h"
#include "measure/result/text.h"
#include "viaduct/doctor.h"
#include "viaduct/doctor_nodes_page.h"
#include "viaduct/remarks.h"

namespace viaduct::app {
namespace {

using diag::FindingGroup;
using diag::NodeResult;
using diag::Severity;

// "results/node-3.json" is "node-3".
std::string nodeOfFile(const std::string& file) {
  std::string name = file.substr(file.rfind('/') + 1);
  if (name.ends_with(".json")) name.resize(name.size() - 5);
  return name;
}

// A file that cannot be read counts as a node without an answer, so that the page still shows all
// other nodes.
NodeResult resultIn(const std::string& file) {
  NodeResult out{.name = nodeOfFile(file)};
  const auto text = measure::contentOfFile(file);
  if (!text) {
    out.silence = text.error().text();
    return out;
  }
  auto read = diag::lastDiagnosisIn(*text);
  if (!read) {
    out.silence = measure::nameOfFile(file) + ": " + read.error().detail;
    return out;
  }
  if (!read->node.hostname.empty()) out.name = read->node.hostname;
  out.diagnosis = *std::move(read);
  return out;
}

std::vector<NodeResult> readNodes(const DoctorCommand& command) {
  std::vector<NodeResult> out;
  for (const std::string& file : command.files) {
    NodeResult one = resultIn(file);
    const bool again =
        std::ranges::any_of(out, [&](const NodeResult& other) { return other.name == one.name; });
    if (again) one.name += fmt::format(" ({})", file);
    out.push_back(std::move(one));
  }
  diag::addSilent(diag::nodeNamesIn(command.expected), out);
  return out;
}

int exitOf(const std::vector<NodeResult>& nodes) {
  int out = kExitFine;
  for (const NodeResult& one : nodes)
    out = std::max<int>(out, one.diagnosis ? doctorExit(one.diagnosis->findings) : kExitWarnings);
  return out;
}

std::string groupText(const FindingGroup& group, const std::vector<NodeResult>& nodes) {
  std::string out = fmt::format("{}  {}  {}\n", base::upper(severityName(group.severity)),
                                group.code, nodesWords(group.nodes.size(), nodes.size()));
  out += measure::wrapped(namesOf(group.nodes, nodes), 2);
  out += measure::wrapped(group.variants.front().finding.what, 2);
  std::string_view label = "Fix:";
  for (const std::string_view line : measure::linesOf(group.variants.front().finding.fix))
    out += fmt::format("  {:<5}{}\n", std::exchange(label, ""), line);
  return out + "\n";
}

std::string summaryText(const std::vector<NodeResult>& nodes) {
  std::string out = nodesVerdict(nodes) + "\n\n";
  for (const NodeResult& one : nodes)
    if (!one.diagnosis) out += fmt::format("NO ANSWER  {}: {}\n", one.name, one.silence);
  for (const FindingGroup& group : diag::groupsOf(nodes))
    if (group.severity != Severity::kInfo) out += groupText(group, nodes);
  return out;
}

}  // namespace

int runDoctorNodes(const DoctorCommand& command) {
  if (command.files.size() > diag::kMostNodes)
    return fail(fmt::format("{} files are more than {} nodes; what to do: make several pages",
                            command.files.size(), diag::kMostNodes),
                kExitNoDiagnosis);
  const std::vector<NodeResult> nodes = readNodes(command);
  if (!command.page.empty()) {
    const auto target = base::ReplacedFile::open("write the page", command.page);
    if (!target) return fail(target.error().text(), kExitNoDiagnosis);
    if (const Status written = target->write(nodesPage(nodes)); !written)
      return fail(written.error().text(), kExitNoDiagnosis);
  }
  fmt::print("{}", summaryText(nodes));
  return exitOf(nodes);
}

}  // namespace viaduct::app
