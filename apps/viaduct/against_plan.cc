#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <array>
#include <utility>

#include "base/sizes.h"
#include "measure/result/text.h"
#include "viaduct/against.h"
#include "viaduct/flags.h"

namespace viaduct::app {
namespace {

// Divides the length of a run by the rounds. So all rounds of a side together take as long as one
// run without --against.
void takeShare(measure::Spec& spec, std::uint32_t rounds) {
  if (!spec.rows.empty() && spec.rows.front().trace) return;  // each round replays all of it
  const auto share = [&](std::uint64_t& count) {
    if (count != 0) count = std::max<std::uint64_t>(count / rounds, 1);
  };
  for (measure::Workload& row : spec.rows) share(row.iterations);
  constexpr std::chrono::nanoseconds kLeast = std::chrono::milliseconds(1);
  spec.duration = std::max(spec.duration / rounds, kLeast);
}

// Refuses pipelines whose stages differ, because their rows then mean different things, and
// pipelines whose transfers differ in size. The places of the stages may differ.
Status samePipeline(const measure::Spec& a, const measure::Spec& b) {
  if (!a.pipeline || !b.pipeline) return Ok{};
  if (a.pipeline->stages != b.pipeline->stages)
    return badFlag(
        "--against",
        fmt::format("the stages of A are {}, and those of B {}",
                    fmt::join(a.pipeline->stages, ", "), fmt::join(b.pipeline->stages, ", ")),
        "give B other places, but the same stages");
  const auto& of_a = a.pipeline_data;
  const auto& of_b = b.pipeline_data;
  if (of_a.bytes == of_b.bytes && of_a.create_source == of_b.create_source) return Ok{};
  return badFlag("--against", "the transfers of A and B have other sizes",
                 "give --total-buffer-size and --create-source on the command line");
}

// Refuses sides whose rows differ in number or block size. Other properties may differ.
Status sameRows(const measure::Spec& a, const measure::Spec& b) {
  constexpr auto kRemedy = "give --backend and --batch, so that both sides have the same rows";
  if (a.rows.size() != b.rows.size())
    return badFlag(
        "--against",
        fmt::format("A has {} and B {}", measure::counted(a.rows.size(), "row"), b.rows.size()),
        kRemedy);
  for (std::size_t i = 0; i < a.rows.size(); ++i)
    if (a.rows[i].block_bytes != b.rows[i].block_bytes)
      return badFlag(
          "--against",
          fmt::format("row {} has blocks of {} in A and of {} in B", i + 1,
                      base::showSize(a.rows[i].block_bytes), base::showSize(b.rows[i].block_bytes)),
          kRemedy);
  return Ok{};
}

std::string nameOf(const RunOptions& options) {
  constexpr std::array<std::string_view, 8> kLeftOut{"against",      "rounds",     "fail_if_slower",
                                                     "least_effect", "json",       "junit",
                                                     "output",       "config_file"};
  GivenFlags given = options.given;
  for (const std::string_view name : kLeftOut)
    if (const auto at = given.find(name); at != given.end()) given.erase(at);
  return commandText(options.command, given);
}

// Refuses turns in which this process forks workers after it has used CUDA, because CUDA fails in
// such a child. A matrix forks its processes from one that never uses CUDA.
Status mayForkAgain(const BenchPlan& plan) {
  const measure::Spec& spec = plan.run.spec;
  if (plan.run.place || plan.matrix || spec.layout.processes() == 1) return Ok{};
  const bool piped = spec.pipeline && spec.pipeline->hasGpu();
  if (!spec.initiator_gpu && !spec.target_gpu && !piped) return Ok{};
  return badFlag("--against and VRAM", "the workers of one host cannot use GPUs in several turns",
                 "start each member with --meet and --rank, or compare two result files");
}

// Fails if the two sides cannot be compared.
Status comparable(const BenchPlan& a, const BenchPlan& b, const std::string& against) {
  if (a.run.spec == b.run.spec && a.run.settings == b.run.settings)
    return badFlag("--against",
                   fmt::format("A and B are the same: \"{}\" changes nothing", against),
                   "name a setting with another value");
  VIADUCT_CHECK(mayForkAgain(a));
  VIADUCT_CHECK(mayForkAgain(b));
  VIADUCT_CHECK(samePipeline(a.run.spec, b.run.spec));
  return sameRows(a.run.spec, b.run.spec);
}

}  // namespace

AgainstPlanOrProblems planAgainst(const BenchPlan& a, const std::vector<std::string>& words,
                                  const RunOptions& options, const std::vector<FlagName>& known,
                                  const WorkloadReader& reader, const Settings& settings) {
  const std::string& text = options.against.settings;
  const OtherSettings other = readOtherSettings(text, known);
  AgainstPlanOrProblems out{.problems = other.problems};
  if (other.flags.empty() && other.variables.empty()) return out;
  std::vector<std::string> both = words;
  both.insert(both.end(), other.flags.begin(), other.flags.end());
  const ReadWorkload read = reader(both, Repeats::kLastWins);
  for (const Error& problem : read.words.problems) out.problems.push_back(insideAgainst(problem));
  const auto agents = withVariables(settings, other.variables);
  if (!agents) out.problems.push_back(insideAgainst(agents.error()));
  const PlanOrProblems b = read.plan(agents ? *agents : settings);
  for (const Error& problem : b.problems) out.problems.push_back(insideAgainst(problem));
  if (!out.problems.empty()) return out;
  if (auto fits = comparable(a, b.plan, text); !fits) {
    out.problems.push_back(std::move(fits).error());
    return out;
  }
  out.plan = {a, b.plan, nameOf(options), "the same with " + text};
  takeShare(out.plan.a.run.spec, options.against.rounds);
  takeShare(out.plan.b.run.spec, options.against.rounds);
  return out;
}

}  // namespace viaduct::app
