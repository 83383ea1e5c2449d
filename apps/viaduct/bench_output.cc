#include "viaduct/bench_output.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstdio>
#include <map>
#include <set>
#include <utility>

#include "measure/result/csv.h"
#include "measure/result/nixlbench.h"
#include "measure/result/table.h"
#include "viaduct/remarks.h"

namespace viaduct::app {
namespace {

using measure::Mode;
using measure::NixlbenchColumns;
using measure::Scheme;

NixlbenchColumns columnsOf(const measure::Layout& layout) {
  const bool many =
      layout.scheme == Scheme::kPairwise && layout.mode == Mode::kSg && layout.processes() > 2;
  return many ? NixlbenchColumns::kManyPairs : NixlbenchColumns::kUsual;
}

std::string counted(std::size_t count, const char* one) {
  return fmt::format("{} {}{}", count, one, count == 1 ? "" : "s");
}

// Flags as nixlbench's banner has them: their defaults there, and what was given here.
std::vector<measure::Option> bannerFlags(const BenchPlan& plan, const BenchOptions& options) {
  std::vector<measure::Option> flags;
  flags.reserve(options.given.size() + 2);
  for (const auto& [name, value] : options.given) flags.push_back({name, value});
  if (plan.run.place && !options.has("etcd_endpoints"))
    flags.push_back({"etcd_endpoints", plan.run.place->where});
  flags.push_back({"backend", plan.run.spec.rows.front().backend});
  return flags;
}

void printHead(const BenchPlan& plan, const std::vector<measure::Member>& members) {
  const measure::Spec& spec = plan.run.spec;
  std::set<std::string> hosts;
  for (const measure::Member& member : members) hosts.insert(member.host.hostname);
  const auto& host = members.front().host;
  fmt::print(
      "viaduct {} on {}{}: {}, {} cores\n", VIADUCT_VERSION, host.hostname,
      hosts.size() > 1 ? fmt::format(" and {}", counted(hosts.size() - 1, "other host")) : "",
      host.cpu_model.empty() ? "unknown CPU" : host.cpu_model, host.cores);
  const std::size_t pairs =
      pairsOf(spec.layout.scheme, spec.layout.initiators, spec.layout.targets).size();
  fmt::print("{}, {} x {} {}, {}; memory: {}; contents checked: {}\n\n",
             fmt::format("{} processes", members.size()), spec.layout.initiators,
             spec.layout.targets, schemeName(spec.layout.scheme), counted(pairs, "pair"),
             memoryChoiceName(spec.memory), verifiedName(spec.verify));
}

std::vector<std::string> conclusionOf(const measure::RunOutcome& outcome) {
  std::map<std::string, std::size_t> best;
  for (std::size_t i = 0; i < outcome.rows.size(); ++i) {
    const measure::Row& row = outcome.rows[i];
    const auto [known, fresh] = best.emplace(row.backend, i);
    if (!fresh && row.gb_per_s.value_or(0) > outcome.rows[known->second].gb_per_s.value_or(0))
      known->second = i;
  }
  std::vector<std::string> lines;
  for (const auto& [backend, at] : best)
    if (!outcome.conclusions[at].empty())
      lines.push_back(fmt::format("{}: {}", backend, outcome.conclusions[at]));
  return lines;
}

}  // namespace

void BenchOutput::head(const std::vector<measure::Member>& members) const {
  switch (plan_.output) {
    case OutputForm::kTable:
      printHead(plan_, members);
      fmt::print("{}", measure::tableHead());
      break;
    case OutputForm::kNixlbench:
      fmt::print("{}{}", measure::nixlbenchBanner(bannerFlags(plan_, options_)),
                 measure::nixlbenchHead(columnsOf(plan_.run.spec.layout)));
      break;
    case OutputForm::kCsv:
      fmt::print("{}", measure::csvHead());
      break;
    case OutputForm::kJson:
      break;
  }
  std::fflush(stdout);
}

void BenchOutput::row(const measure::Row& row) const {
  switch (plan_.output) {
    case OutputForm::kTable:
      fmt::print("{}", measure::tableLine(row));
      break;
    case OutputForm::kNixlbench:
      fmt::print("{}", measure::nixlbenchLine(row, columnsOf(plan_.run.spec.layout)));
      break;
    case OutputForm::kCsv:
      fmt::print("{}", measure::csvLine(row));
      break;
    case OutputForm::kJson:
      break;
  }
  std::fflush(stdout);
}

void BenchOutput::end(const measure::Report& report) const {
  if (plan_.output == OutputForm::kJson) fmt::print("{}", toJson(report));
  if (plan_.output == OutputForm::kTable && !report.conclusion.empty()) {
    fmt::print("\n");
    for (const std::string& line : report.conclusion) fmt::print("{}\n", line);
  }
  std::fflush(stdout);
}

void sayWhereResultsAppear(std::uint32_t rank, std::size_t members, const std::string& first) {
  remark(fmt::format("rank {} of {}; results appear {}", rank, members,
                     rank == 0 ? "here" : fmt::format("at rank 0 ({})", first)));
}

measure::Report reportOf(const BenchPlan& plan, std::string started,
                         const measure::RunOutcome& outcome) {
  measure::Report report = measure::startReport(VIADUCT_VERSION, plan.run.settings);
  report.started = std::move(started);
  report.command = plan.command;
  report.end = outcome.end == measure::RunEnd::kComplete ? "complete" : outcome.problem;
  report.environment.members = outcome.members;
  report.environment.fingerprint = measure::fingerprintOf(outcome.members);
  report.settings = optionsOf(plan.run.spec);
  report.rows = outcome.rows;
  report.conclusion = conclusionOf(outcome);
  return report;
}

}  // namespace viaduct::app
