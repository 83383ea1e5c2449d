#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <array>
#include <cctype>
#include <string_view>

#include "base/json.h"
#include "base/text.h"
#include "measure/result/text.h"
#include "viaduct/command_names.h"
#include "viaduct/doctor.h"
#include "viaduct/help_text.h"

namespace viaduct::app {
namespace {

using base::Json;
using diag::Finding;
using diag::Severity;

// Returns "  Cause: text" with further lines below the text. Lines of a fix are not wrapped,
// because they are commands.
std::string labelled(std::string_view label, const std::string& text, bool commands = false) {
  if (text.empty()) return {};
  constexpr std::size_t kColumn = 10;
  const std::string start = fmt::format("  {:<{}}", fmt::format("{}:", label), kColumn - 2);
  std::string body = commands ? "" : measure::wrapped(text, kColumn);
  if (commands)
    for (const std::string_view line : measure::linesOf(text))
      body += fmt::format("{:{}}{}\n", "", kColumn, line);
  return start + body.substr(kColumn);
}

std::string textOf(const Finding& finding) {
  std::string out = fmt::format("{}  {}\n{}", base::upper(severityName(finding.severity)),
                                finding.code, measure::wrapped(finding.what, 2));
  for (const diag::Evidence& one : finding.evidence)
    out += labelled("Seen", one.source + ": " + one.value);
  out += labelled("Cause", finding.cause) + labelled("Fix", asTyped(finding.fix), true) +
         labelled("Gain", finding.gain);
  return out + "\n";
}

std::size_t countOf(const diag::Findings& findings, Severity severity) {
  return static_cast<std::size_t>(
      std::count_if(findings.all().begin(), findings.all().end(),
                    [&](const Finding& one) { return one.severity == severity; }));
}

std::string verdict(const diag::Findings& findings) {
  using measure::counted;
  const std::size_t failures = countOf(findings, Severity::kFailure),
                    warnings = countOf(findings, Severity::kWarning),
                    unknown = countOf(findings, Severity::kUnknown);
  std::vector<std::string> parts;
  if (failures > 0) parts.push_back(counted(failures, "failure") + " (will not work)");
  if (warnings > 0) parts.push_back(counted(warnings, "warning"));
  if (unknown > 0) parts.push_back(counted(unknown, "fact") + " that could not be looked at");
  if (parts.empty()) parts.emplace_back("no fault found");
  return fmt::format("{}; {} in order\n", fmt::join(parts, ", "),
                     counted(findings.fines().size(), "fact"));
}

}  // namespace

int doctorExit(const diag::Findings& findings) {
  const Severity worst = findings.worst();
  if (worst == Severity::kFailure) return kExitWillNotWork;
  return worst == Severity::kInfo ? kExitFine : kExitWarnings;
}

std::string doctorText(const diag::Diagnosis& diagnosis, bool verbose) {
  const auto& [node, findings, facts] = diagnosis;
  const auto known = [](const std::string& text) { return text.empty() ? "(unknown)" : text; };
  std::string out = fmt::format("viaduct {} doctor: {}, Linux {}, {}\n\n", VIADUCT_VERSION,
                                known(node.hostname), known(node.kernel), known(node.machine));
  constexpr std::array kOrder{Severity::kFailure, Severity::kWarning, Severity::kUnknown,
                              Severity::kInfo};
  for (const Severity severity : kOrder)
    for (const Finding& finding : findings.all())
      if (finding.severity == severity) out += textOf(finding);
  if (verbose) {
    for (const diag::Fine& fine : findings.fines())
      out += measure::wrapped(fmt::format("ok  {:<10} {}", fine.topic, fine.what), 0);
    out += "\n";
  }
  return out + verdict(findings);
}

std::string doctorJson(const diag::Diagnosis& diagnosis) {
  Json out = diag::asJson(diagnosis);
  out["viaduct"] = VIADUCT_VERSION;
  out["exit_code"] = doctorExit(diagnosis.findings);
  return base::dumpJson(out, 2) + "\n";
}

}  // namespace viaduct::app
