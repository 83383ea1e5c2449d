#include "viaduct/gpu_matrix.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstdio>
#include <iterator>
#include <utility>

#include "base/text_table.h"
#include "measure/matrix/matrix.h"
#include "measure/result/text.h"
#include "viaduct/bench_progress.h"
#include "viaduct/flags.h"
#include "viaduct/interrupt.h"
#include "viaduct/remarks.h"
#include "viaduct/results_file.h"

namespace viaduct::app {
namespace {

namespace matrix = measure::matrix;
using measure::Workload;

constexpr std::uint64_t kLatencyBlock = 4096, kRateBlock = std::uint64_t{64} << 20U;

struct MatrixPlan {
  BenchPlan bench = {};  // without rows
  Workload rate = {}, latency = {};
  std::vector<std::uint32_t> processes = {};
};

void addProblems(const BenchOptions& o, std::vector<Error>& problems) {
  if (o.as_nixlbench)
    problems.push_back(badFlag("--gpu_matrix", "nixlbench has no matrix", "call viaduct bench"));
  if (o.block_sizes.size() > 2)
    problems.push_back(badFlag("--block_sizes", "a matrix has two sizes: of latencies and of rates",
                               "for example --block_sizes 4K,64M"));
  if (o.has("backend") && o.backends.size() > 1)
    problems.push_back(badFlag("--backend", "a matrix measures one backend",
                               "name one, or none: the agents choose for each pair"));
  if (o.output == OutputForm::kCsv || o.output == OutputForm::kNixlbench)
    problems.push_back(
        badFlag("--gpu_matrix and --output", "a matrix has no such form: use table or json"));
}

// Returns the options of a run between GPUs, which every cell changes.
BenchOptions optionsOfCells(BenchOptions o) {
  o.initiator_seg_type = o.target_seg_type = "VRAM";
  if (o.block_sizes.empty()) o.block_sizes = {kLatencyBlock, kRateBlock};
  std::ranges::sort(o.block_sizes);
  o.spec.layout.mode = measure::Mode::kSg;
  return o;
}

MatrixPlan planMatrix(const BenchOptions& o, BenchPlan bench) {
  std::vector<Workload> rows = std::exchange(bench.run.spec.rows, {});
  if (!o.has("backend"))
    for (Workload& row : rows) row.backend.clear();
  const auto sized = [&](std::uint64_t bytes) {
    return *std::ranges::find(rows, bytes, &Workload::block_bytes);
  };
  MatrixPlan out{.bench = std::move(bench),
                 .rate = sized(o.block_sizes.back()),
                 .latency = sized(o.block_sizes.front())};
  out.latency.batch = 1;
  const bool both = !o.has("mode");
  if (both || o.spec.layout.mode == measure::Mode::kMg) out.processes.push_back(1);
  if (both || o.spec.layout.mode == measure::Mode::kSg) out.processes.push_back(2);
  return out;
}

int measureAndPrint(const MatrixPlan& plan, std::vector<matrix::SeenGpu> gpus, ResultsFile& file,
                    const base::StopFlag& stop) {
  const bool as_json = plan.bench.output == OutputForm::kJson;
  matrix::GpuMatrix found{
      .version = VIADUCT_VERSION,
      .started = measure::startReport(VIADUCT_VERSION, plan.bench.run.settings).started,
      .command = plan.bench.command,
      .rate = plan.rate,
      .latency = plan.latency,
      .gpus = std::move(gpus)};
  found.cells = matrix::cellsOf(found.gpus, plan.processes);
  BenchProgress line(found.cells.size(), as_json);
  matrix::measureMatrix(
      plan.bench.run, found,
      [&](std::size_t number) {
        const matrix::Cell& cell = found.cells[number];
        line.started(number, fmt::format("{} to {}, {}", matrix::placeName(cell.from),
                                         matrix::placeName(cell.to),
                                         cell.processes == 1 ? "one process" : "two processes"));
      },
      stop);
  line.clear();
  const std::string json = matrix::matrixJson(found);
  fmt::print("{}", as_json ? json : matrix::matrixText(found, base::terminalWidth()));
  std::fflush(stdout);
  if (const auto written = file.write(json); !written)
    return fail(written.error().text(), kExitFailed);
  if (stop.load()) return fail("interrupted; the matrix is not complete", kExitInterrupted);
  return matrix::allGood(found) ? kExitOk : fail("not every pair is valid: see above", kExitFailed);
}

}  // namespace

int runGpuMatrix(const BenchOptions& options, const Settings& settings,
                 std::vector<Error> problems) {
  addProblems(options, problems);
  const BenchOptions of_cells = optionsOfCells(options);
  PlanOrProblems planned = planBench(of_cells, settings);
  std::ranges::move(planned.problems, std::back_inserter(problems));
  if (problems.empty() && planned.plan.run.spec.layout.stored())
    problems.push_back(badFlag("--gpu_matrix and --backend", "the backend moves files or objects",
                               "name a backend between processes"));
  if (!problems.empty()) return failAll(problems);
  auto file = ResultsFile::open(options.json);
  if (!file) return fail(file.error().text(), kExitUsage);
  const base::StopFlag& stop = stopOnSignals();
  auto gpus = matrix::seeGpus(planned.plan.run.settings, options.gpu_matrix, stop);
  if (!gpus) return fail(gpus.error().text(), kExitFailed);
  BenchOptions chosen = of_cells;
  chosen.spec.layout.mode = options.spec.layout.mode;
  return measureAndPrint(planMatrix(chosen, std::move(planned.plan)), *std::move(gpus), *file,
                         stop);
}

}  // namespace viaduct::app
