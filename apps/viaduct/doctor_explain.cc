// Implements `viaduct doctor --explain`: finds the known error texts of a log, and the causes that
// hold on this node.
#include <fcntl.h>
#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <string>

#include "base/fd.h"
#include "base/file_error.h"
#include "base/sizes.h"
#include "diag/explain/explanation.h"
#include "diag/explain/log_reader.h"
#include "diag/topics.h"
#include "viaduct/doctor.h"

namespace viaduct::app {
namespace {

using diag::OnNode;

// Returns whether the doctor found `code` on this node. The topic of the code counts as examined if
// it has a result, but no finding of severity kUnknown.
OnNode relationOf(const diag::Findings& findings, std::string_view code) {
  const std::string_view topic = code.substr(0, code.find('.'));
  const auto& found = findings.all();
  const auto of_topic = [&](const diag::Finding& one) { return one.topic == topic; };
  if (findings.has(code)) return OnNode::kFound;
  if (std::any_of(found.begin(), found.end(), [&](const diag::Finding& one) {
        return of_topic(one) && one.severity == diag::Severity::kUnknown;
      }))
    return OnNode::kNotLooked;
  const bool looked = std::any_of(found.begin(), found.end(), of_topic) ||
                      std::any_of(findings.fines().begin(), findings.fines().end(),
                                  [&](const diag::Fine& one) { return one.topic == topic; });
  return looked ? OnNode::kNotTheCase : OnNode::kNotLooked;
}

// Shows on a terminal how many bytes of a log have been read.
void showProgress(std::uint64_t bytes) {
  fmt::print(stderr, "\r{} read", base::roundedSize(bytes));
}

}  // namespace

Result<int> runDoctorExplain(const DoctorCommand& command, const diag::Diagnosis& node) {
  const bool from_stdin = command.explain == "-";
  const base::Fd file(from_stdin ? ::dup(STDIN_FILENO)
                                 : ::open(command.explain.c_str(), O_RDONLY | O_CLOEXEC));
  const std::string name = from_stdin ? "standard input" : command.explain;
  if (!file) return base::fileError("read the log", errno, name);
  const bool terminal = ::isatty(STDERR_FILENO) == 1;
  auto summary = diag::readLog(file.get(), terminal ? showProgress : nullptr);
  if (terminal) fmt::print(stderr, "\r\033[K");
  if (!summary) {
    Error error = summary.error();
    error.detail = fmt::format("{}: {}", name, error.detail);
    return error;
  }
  const diag::NodeRelation relation = [&](std::string_view code) {
    return relationOf(node.findings, code);
  };
  fmt::print("{}", command.json ? base::dumpJson(explanationJson(*summary, relation), 2) + "\n"
                                : explanationText(*summary, relation));
  const bool errors = std::any_of(summary->findings.begin(), summary->findings.end(),
                                  [](const diag::LogFinding& one) {
                                    return one.text->kind == diag::TextKind::kError ||
                                           one.text->kind == diag::TextKind::kFollowUp;
                                  });
  return errors ? kExitWarnings : kExitFine;
}

}  // namespace viaduct::app
