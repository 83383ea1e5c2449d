// The plan of `viaduct bench`.
#include "viaduct/bench_plan.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "base/sizes.h"
#include "measure/workload/storage.h"
#include "meet/groups/group.h"
#include "viaduct/bench_storage.h"
#include "viaduct/nixlbench.h"

namespace viaduct::app {
namespace {

using measure::Layout;
using measure::Mode;
using measure::Scheme;

Result<Layout> knownLayout(const BenchOptions& o, bool stored) {
  Layout layout = o.spec.layout;
  if (stored) {
    layout.scheme = Scheme::kPairwise;
    layout.targets = 0;
    const bool by_workers = o.local_workers != 0 && !o.has("num_initiator_dev");
    if (by_workers && layout.mode == Mode::kSg) layout.initiators = o.local_workers;
  }
  if (o.local_workers == 0) return layout;
  const bool counted = o.has("num_initiator_dev") || o.has("num_target_dev");
  if (!stored && !counted && layout.mode == Mode::kSg) {
    const std::uint32_t n = o.local_workers;
    layout.initiators = layout.scheme == Scheme::kManyToOne   ? n - 1
                        : layout.scheme == Scheme::kOneToMany ? 1
                                                              : n / 2;
    layout.targets = n - layout.initiators;
  }
  if (layout.processes() == o.local_workers) return layout;
  return badFlag(
      "--local_workers and --num_initiator_dev, --num_target_dev, --mode",
      fmt::format("{} x {} devices in mode {} need {} processes, not {}", layout.initiators,
                  layout.targets, modeName(layout.mode), layout.processes(), o.local_workers),
      "omit --local_workers, or set it to that number");
}

Result<Layout> layoutOf(const BenchOptions& o, bool stored) {
  if (o.spec.layout.initiators > meet::kMaxMembers || o.spec.layout.targets > meet::kMaxMembers)
    return badFlag("--num_initiator_dev, --num_target_dev", "the limit is 65536 devices");
  return knownLayout(o, stored);
}

// Returns the transfers of each thread, if all threads together make `count`, rounded up.
std::uint64_t perThread(const BenchOptions& o, std::uint64_t count, std::uint64_t block) {
  const std::uint64_t rounded = roundedForThreads(o, count);
  const std::uint64_t all = block > base::kMiB ? rounded / o.counts.divisor : rounded;
  return std::max<std::uint64_t>(all / o.spec.threads, 1);
}

Result<PlannedRows> countedRows(const BenchOptions& o, const std::vector<std::string>& backends) {
  VIADUCT_TRY(
      PlannedRows out,
      rowsOf(o, backends, o.block_sizes.empty() ? measure::usualBlockSizes() : o.block_sizes,
             o.batches));
  for (measure::Workload& row : out.rows) {
    if (o.counts.timed != 0) row.iterations = perThread(o, o.counts.timed, row.block_bytes);
    if (o.counts.warm != 0) row.warm_iterations = perThread(o, o.counts.warm, row.block_bytes);
  }
  return out;
}

}  // namespace

std::uint64_t roundedForThreads(const BenchOptions& o, std::uint64_t count) {
  const std::uint64_t to = o.spec.threads * o.counts.divisor;
  return (count + to - 1) / to * to;
}

PlanOrProblems planBenchAfter(std::vector<Error> found, const BenchOptions& o,
                              const Settings& settings) {
  addBenchContradictions(o, found);
  PlanOrProblems out = planRows(
      o, settings,
      {.found = std::move(found),
       .layout = [&](bool stored) { return layoutOf(o, stored); },
       .rows = [&](const auto& backends, const Layout&, bool) { return countedRows(o, backends); },
       .storage = [&](std::optional<MemoryKind> kind) { return storageOf(o, kind, settings); }});
  out.plan.chose_local = o.local_workers != 0;
  if (out.problems.empty() && out.plan.output == OutputForm::kNixlbench)
    out.plan.banner = bannerFlags(out.plan, o);
  return out;
}

PlanOrProblems planBench(const BenchOptions& o, const Settings& settings) {
  return planBenchAfter({}, o, settings);
}

}  // namespace viaduct::app
