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
#include "viaduct/interrupt.h"
#include "viaduct/remarks.h"
#include "viaduct/results_file.h"

namespace viaduct::app {
namespace {

namespace matrix = measure::matrix;

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

int runGpuMatrix(const MatrixOptions& options, const Settings& settings,
                 std::vector<Error> problems) {
  MatrixPlanOrProblems planned = planMatrix(options, settings);
  std::ranges::move(planned.problems, std::back_inserter(problems));
  if (!problems.empty()) return failAll(problems);
  auto file = ResultsFile::open(options.out.json);
  if (!file) return fail(file.error().text(), kExitUsage);
  const base::StopFlag& stop = stopOnSignals();
  auto gpus = matrix::seeGpus(planned.plan.bench.run.settings, options.gpus, stop);
  if (!gpus) return fail(gpus.error().text(), kExitFailed);
  return measureAndPrint(planned.plan, *std::move(gpus), *file, stop);
}

}  // namespace viaduct::app
