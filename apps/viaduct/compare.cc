#include <fmt/format.h>

#include <cstdio>

#include "measure/compare/compare_output.h"
#include "measure/import/files.h"
#include "viaduct/remarks.h"

namespace viaduct::app {
namespace {

using measure::Report;

Result<std::vector<Report>> readSide(const std::vector<std::string>& files) {
  std::vector<Report> out;
  for (const std::string& file : files) {
    VIADUCT_TRY(auto reports, measure::readReports(file));
    for (Report& report : reports) out.push_back(std::move(report));
  }
  return out;
}

// Returns a text such as "a.json (viaduct 0.1.0, 2026-01-02T03:04:05Z)".
std::string describe(const std::vector<std::string>& files, const std::vector<Report>& reports) {
  const Report& first = reports.front();
  return fmt::format("{} ({}{}{})", fmt::join(files, " "), toolOf(first),
                     first.started.empty() ? "" : ", ", first.started);
}

}  // namespace

int endOf(const measure::Comparison& found, const measure::CompareOptions& options) {
  if (options.slower && found.isWorse()) return kExitFailed;
  switch (found.evidence) {
    case measure::SampleEvidence::kEnough:
      break;
    case measure::SampleEvidence::kTooFewRuns:
      return fail("not enough runs to tell a difference", kExitUnsure);
    case measure::SampleEvidence::kNotInTurns:
      return fail("the runs of A and B did not take turns", kExitUnsure);
  }
  return kExitOk;
}

int runCompare(const CompareCommand& command) {
  calledAs("viaduct compare");
  const bool two = command.before.empty();
  if (two && command.files.size() != 2)
    return fail(
        Error{.operation = "compare",
              .detail = "two files are needed",
              .remedy = "run viaduct compare A.json B.json, or use --before ... --after ..."}
            .text(),
        kExitUsage);
  const auto files_a = two ? std::vector{command.files[0]} : command.before;
  const auto files_b = two ? std::vector{command.files[1]} : command.after;
  const auto a = readSide(files_a);
  if (!a) return fail(a.error().text(), kExitUsage);
  const auto b = readSide(files_b);
  if (!b) return fail(b.error().text(), kExitUsage);
  const auto found = measure::compare(*a, *b, command.options);
  if (!found) return fail(found.error().text(), kExitUsage);

  const measure::ComparedFiles names{describe(files_a, *a), describe(files_b, *b)};
  const std::string out = command.json ? measure::compareJson(*found, names)
                                       : measure::compareText(*found, names, command.options);
  fmt::print("{}", out);
  std::fflush(stdout);
  return endOf(*found, command.options);
}

}  // namespace viaduct::app
