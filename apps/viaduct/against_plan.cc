#include <fmt/format.h>

#include <algorithm>
#include <array>

#include "base/sizes.h"
#include "viaduct/against.h"
#include "viaduct/flags.h"

namespace viaduct::app {
namespace {

// All rounds of a side together take as long as one run without --against.
void takeShare(measure::Spec& spec, std::uint32_t rounds) {
  const auto share = [&](std::uint64_t& count) {
    if (count != 0) count = std::max<std::uint64_t>(count / rounds, 1);
  };
  for (measure::Workload& row : spec.rows) share(row.iterations);
  constexpr std::chrono::nanoseconds kLeast = std::chrono::milliseconds(1);
  spec.duration = std::max(spec.duration / rounds, kLeast);
}

// Row by row the sides have to be of the same block size; anything else may differ.
Status sameRows(const measure::Spec& a, const measure::Spec& b) {
  constexpr auto kRemedy = "give --backend, and --batch, so that both sides have the same rows";
  if (a.rows.size() != b.rows.size())
    return badFlag("--against", fmt::format("A has {} rows and B {}", a.rows.size(), b.rows.size()),
                   kRemedy);
  for (std::size_t i = 0; i < a.rows.size(); ++i)
    if (a.rows[i].block_bytes != b.rows[i].block_bytes)
      return badFlag("--against",
                     fmt::format("row {} is of {} in A and of {} in B", i + 1,
                                 base::formatSize(a.rows[i].block_bytes),
                                 base::formatSize(b.rows[i].block_bytes)),
                     kRemedy);
  return Ok{};
}

std::string nameOf(const BenchOptions& options) {
  constexpr std::array<std::string_view, 7> kLeftOut{
      "against", "rounds", "fail_if_slower", "least_effect", "json", "output", "config_file"};
  GivenFlags given = options.given;
  for (const std::string_view name : kLeftOut)
    if (const auto at = given.find(name); at != given.end()) given.erase(at);
  return commandText(options.as_nixlbench ? "nixlbench" : "viaduct bench", given);
}

}  // namespace

Result<AgainstPlan> planAgainst(const BenchPlan& a, const std::vector<std::string>& words,
                                const BenchOptions& options, const Settings& settings) {
  VIADUCT_TRY(const OtherSettings other, readOtherSettings(options.against, benchFlagNames()));
  std::vector<std::string> both = words;
  both.insert(both.end(), other.flags.begin(), other.flags.end());
  const auto read = readBenchOptions(both, options.as_nixlbench);
  if (!read) return insideAgainst(read.error());
  const auto agents = withVariables(settings, other.variables);
  if (!agents) return insideAgainst(agents.error());
  const PlanOrProblems b = planBench(*read, *agents);
  if (!b.problems.empty()) return insideAgainst(b.problems.front());
  if (a.run.spec == b.plan.run.spec && a.run.settings == b.plan.run.settings)
    return badFlag("--against",
                   fmt::format("A and B are the same: \"{}\" changes nothing", options.against),
                   "name a setting with another value");
  VIADUCT_CHECK(sameRows(a.run.spec, b.plan.run.spec));
  AgainstPlan out{a, b.plan, nameOf(options), "the same with " + options.against};
  takeShare(out.a.run.spec, options.rounds);
  takeShare(out.b.run.spec, options.rounds);
  return out;
}

}  // namespace viaduct::app
