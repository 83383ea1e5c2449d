#include "viaduct/bench_output.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cstdio>
#include <map>
#include <set>
#include <string_view>
#include <utility>

#include "base/sizes.h"
#include "measure/result/best_rate.h"
#include "measure/result/csv.h"
#include "measure/result/nixlbench.h"
#include "measure/result/pipeline_table.h"
#include "measure/result/table.h"
#include "measure/result/text.h"
#include "viaduct/remarks.h"

namespace viaduct::app {
namespace {

using measure::counted;
using measure::Mode;
using measure::NixlbenchColumns;
using measure::Scheme;

NixlbenchColumns columnsOf(const measure::Layout& layout) {
  const bool many =
      layout.scheme == Scheme::kPairwise && layout.mode == Mode::kSg && layout.processes() > 2;
  return many ? NixlbenchColumns::kManyPairs : NixlbenchColumns::kUsual;
}

std::string pairWords(const measure::Layout& layout) {
  if (layout.pattern())
    return fmt::format("{}, {}", schemeName(layout.scheme),
                       counted(pairsOf(layout).size(), "pair"));
  return fmt::format("{} x {} {}, {}", layout.initiators, layout.targets, schemeName(layout.scheme),
                     counted(pairsOf(layout).size(), "pair"));
}

std::string storageWords(const measure::Spec& spec) {
  const measure::StorageChoice& storage = spec.storage;
  if (storage.kind == MemoryKind::kObject)
    return fmt::format("{}, with objects in the bucket {}",
                       counted(spec.layout.initiators, "device"), storage.place);
  if (!storage.names.empty())
    return fmt::format("1 device, with {}: {}", counted(storage.files, "file"),
                       fmt::join(storage.names, ", "));
  return fmt::format("{}, each with {} in {}", counted(spec.layout.initiators, "device"),
                     counted(storage.files, "file"), storage.place);
}

// Names only the kinds of memory. The members report their GPUs later, with the rows.
std::string memoryWords(const measure::Spec& spec) {
  if (!spec.initiator_gpu && !spec.target_gpu) return memoryChoiceName(spec.memory);
  const char* const here = spec.initiator_gpu ? "VRAM" : "DRAM";
  const char* const there = spec.target_gpu ? "VRAM" : "DRAM";
  const bool same = spec.layout.stored() || std::string_view(here) == there;
  return same ? here : fmt::format("{}/{}", here, there);
}

std::string whatWords(const BenchPlan& plan) {
  const measure::Spec& spec = plan.run.spec;
  if (plan.matrix) return counted(plan.matrix->gpus.size(), "GPU");
  if (spec.pipeline)
    return fmt::format("{} of {}", counted(spec.pipeline->stages.size(), "stage"),
                       spec.pipeline->text);
  if (!spec.rows.empty() && spec.rows.front().swap) return "host memory and a GPU";
  return spec.layout.stored() ? storageWords(spec) : pairWords(spec.layout);
}

// Counts hosts by boot id, and by the start of their kernels. If the two counts differ, the text
// says "perhaps".
std::string otherHostsWords(const std::vector<measure::RunMember>& members) {
  std::set<std::string> boots;
  std::vector<double> starts;
  for (const measure::RunMember& member : members) {
    const double own = member.host.kernel_started;
    boots.insert(member.host.boot_id);
    if (std::ranges::none_of(starts, [&](double one) { return host::startedTogether(one, own); }))
      starts.push_back(own);
  }
  const std::size_t hosts = std::max(boots.size(), starts.size());
  if (hosts == 1) return {};
  return fmt::format(" and {}{}", boots.size() == starts.size() ? "" : "perhaps ",
                     counted(hosts - 1, "other host"));
}

void printHead(const BenchPlan& plan, const std::vector<measure::RunMember>& members) {
  const measure::Spec& spec = plan.run.spec;
  const auto& host = members.front().host;
  fmt::print("viaduct {} on {}{}: {}, {}\n", VIADUCT_VERSION, host.hostname,
             otherHostsWords(members), host.cpu_model.empty() ? "unknown CPU" : host.cpu_model,
             counted(host.cores, "core"));
  fmt::print("{}, {}; memory: {}; contents checked: {}{}\n\n",
             members.size() == 1 ? "1 process" : fmt::format("{} processes", members.size()),
             whatWords(plan), memoryWords(spec), verifiedName(spec.verify),
             spec.ping_pong ? "; latency: half of a round trip" : "");
  if (const std::string& faults = plan.run.settings.faults; !faults.empty())
    fmt::print("FAULTS are injected, and no row can be proven: VIADUCT_FAULTS={}\n\n", faults);
}

// Returns the conclusion of the best row, or of the fastest one if none can be used.
std::string conclusionOfBest(const measure::RunOutcome& outcome,
                             const std::vector<measure::Row>& rows) {
  const auto rate = [](const measure::Row& row) { return row.gb_per_s.value_or(0); };
  const measure::Row best =
      measure::bestRow(rows).value_or(*std::ranges::max_element(rows, {}, rate));
  const std::string identity = identityOf(best);
  std::size_t nearest = outcome.rows.size();  // the repeat with the rate of `best`
  for (std::size_t i = 0; i < outcome.rows.size(); ++i)
    if (identityOf(outcome.rows[i]) == identity &&
        (nearest == outcome.rows.size() || rate(outcome.rows[i]) == rate(best)))
      nearest = i;
  return outcome.conclusions[nearest];
}

std::vector<std::string> conclusionOf(const BenchPlan& plan, const measure::RunOutcome& outcome) {
  if (plan.matrix) return measure::matrix::gpuWords(plan.matrix->gpus);
  if (plan.run.spec.pipeline) return measure::pipeline::conclusionsOf(outcome.rows);
  std::map<std::string, std::vector<measure::Row>> backends;
  for (const measure::Row& row : outcome.rows) backends[row.backend].push_back(row);
  std::vector<std::string> lines;
  for (const auto& [backend, rows] : backends) {
    const std::string line = conclusionOfBest(outcome, rows);
    if (!line.empty()) lines.push_back(fmt::format("{}: {}", backend, line));
  }
  return lines;
}

}  // namespace

void BenchOutput::head(const std::vector<measure::RunMember>& members) const {
  switch (plan_.output) {
    case OutputForm::kTable:
      printHead(plan_, members);
      break;
    case OutputForm::kNixlbench:
      fmt::print("{}{}", measure::nixlbenchBanner(plan_.banner),
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

void BenchOutput::row(const measure::Row& row) {
  switch (plan_.output) {
    case OutputForm::kTable:
      fmt::print("{}", table_.add(row));
      break;
    case OutputForm::kNixlbench:
      fmt::print("{}", measure::nixlbenchLine(row, columnsOf(plan_.run.spec.layout)));
      // nixlbench's table has no column for remarks and verdicts.
      if (row.interrupted || (usesGpu(row) && row.remark != remark_)) remark(row.remark);
      if (!isGood(row.verdict))
        remark(fmt::format("{} x {}: {}: {}", base::showSize(row.block_size), row.batch_size,
                           measure::loudName(row.verdict), row.why));
      remark_ = row.remark;
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
  if (plan_.output == OutputForm::kNixlbench) fmt::print("{}", nixlbenchCarrier(report.rows));
  if (plan_.output == OutputForm::kTable) {
    measure::TextSink sink(base::terminalWidth());
    showTables(report.rows, measure::Kinds::kBesideOneAnother, sink);
    fmt::print("{}", sink.text());
  }
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
  measure::addSharesOfBulk(report.rows);
  report.conclusion = conclusionOf(plan, outcome);
  return report;
}

}  // namespace viaduct::app
