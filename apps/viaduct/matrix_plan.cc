// The flags of `viaduct matrix`, and its plan.
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <limits>
#include <utility>

#include "base/sizes.h"
#include "viaduct/command_line.h"
#include "viaduct/run_flags.h"
#include "viaduct/workload.h"

namespace viaduct::app {
namespace {

struct MatrixOptions : RunOptions {
  std::vector<std::uint32_t> gpus = {};         // empty: all
  std::vector<std::uint64_t> block_sizes = {};  // of the latency rows, and of the rate rows
  std::vector<std::uint32_t> batches = {};      // one, for the rate rows; empty: the usual one
};
using MatrixFlag = Flag<MatrixOptions>;

constexpr std::uint64_t kLatencyBlock = 4 * base::kKiB, kRateBlock = 64 * base::kMiB;

Status intoGpus(std::string_view text, std::vector<std::uint32_t>& into) {
  if (text == "all") return Ok{};
  std::vector<std::string> words;
  VIADUCT_CHECK(intoWords(text, words));
  for (const std::string& word : words) {
    VIADUCT_TRY(const std::uint64_t number,
                countIn(word, 0, std::numeric_limits<std::uint32_t>::max()));
    const auto gpu = static_cast<std::uint32_t>(number);
    if (std::ranges::find(into, gpu) != into.end())
      return wrongValue(fmt::format("GPU {} is named twice", gpu), "name each GPU once, or all");
    into.push_back(gpu);
  }
  return Ok{};
}

Status intoMatrixBatch(std::string_view text, MatrixOptions& into) {
  VIADUCT_TRY(const std::uint64_t batch,
              countIn(text, 1, std::numeric_limits<std::uint32_t>::max()));
  into.batches = {static_cast<std::uint32_t>(batch)};
  return Ok{};
}

constexpr std::array kMatrixGpus{
    MatrixFlag{"GPUS", "N,...", "all", "numbers of the GPUs", set<intoGpus, &MatrixOptions::gpus>}};
constexpr std::array kMatrixFlags{
    MatrixFlag{"block_sizes", "SIZE,SIZE", "4K,64M", "block sizes of latencies and of rates",
               set<intoSizes, &MatrixOptions::block_sizes>},
    MatrixFlag{"batch", "N", "64, or fewer to stay at 64 MiB", "blocks per transfer of rates",
               intoMatrixBatch},
    MatrixFlag{"mode", "SG|MG", "both",
               "SG: the GPUs of a pair are in two processes; MG: in one process",
               oneOf<measure::kModes, &MatrixOptions::spec, &measure::Spec::layout,
                     &measure::Layout::mode>},
};
constexpr std::array kMatrixOutput{outputFlag<kTableOrJson>("table|json")};

FlagSheet matrixSheet(MatrixOptions& o) {
  FlagSheet out;
  out.add<MatrixOptions>("Arguments", kMatrixGpus, o).add<MatrixOptions>("Data", kMatrixFlags, o);
  addBlocks(out, o);
  out.add("Workers", runFlags(), o,
          {"num_threads", "pipeline_depth", "bidirectional", "recreate_xfer"});
  addDuration(out, o);
  addChecks(out, o);
  addComparison(out, o);
  addOutput(out, o, kMatrixOutput, {"json"});
  return out;
}

void addProblems(const MatrixOptions& o, std::vector<Error>& problems) {
  if (o.block_sizes.size() > 2)
    problems.push_back(badFlag("--block_sizes", "a matrix has two sizes: of latencies and of rates",
                               "for example --block_sizes 4K,64M"));
  if (o.backends.size() > 1)
    problems.push_back(badFlag("--backend", "a matrix measures one backend",
                               "name one, or none: the agents choose for each pair"));
}

PlanOrProblems planMatrix(const MatrixOptions& o, const Settings& settings) {
  PlanOrProblems out;
  addProblems(o, out.problems);
  // Plans one run between GPUs. Each cell of the matrix is this run with other GPUs.
  RunOptions run = o;
  run.initiator_seg_type = run.target_seg_type = "VRAM";
  run.spec.layout.mode = measure::Mode::kSg;
  std::vector<std::uint64_t> sizes = o.block_sizes;
  if (sizes.empty()) sizes = {kLatencyBlock, kRateBlock};
  std::ranges::sort(sizes);
  PlanOrProblems planned =
      planRows(run, settings, {.rows = [&](const auto& backends, const auto&, bool) {
                 return rowsOf(run, backends, sizes, o.batches);
               }});
  std::ranges::move(planned.problems, std::back_inserter(out.problems));
  if (!out.problems.empty()) return out;
  out.plan = std::move(planned.plan);
  // A cell measures the rate of the larger size, and then the latency of the smaller one.
  std::vector<measure::Workload>& rows = out.plan.run.spec.rows;
  rows = {rows.back(), rows.front()};
  rows.back().batch = 1;
  if (o.backends.empty())
    for (measure::Workload& row : rows) row.backend.clear();
  measure::matrix::MatrixRequest& request = out.plan.matrix.emplace();
  for (const auto& [mode, processes] :
       {std::pair(measure::Mode::kMg, 1U), {measure::Mode::kSg, 2U}})
    if (!o.has("mode") || o.spec.layout.mode == mode) request.processes.push_back(processes);
  request.numbers = o.gpus;
  return out;
}

constexpr Workload<MatrixOptions> kMatrix{
    "viaduct matrix",
    "Measure each ordered pair of the GPUs of this host, and each GPU with host memory.\n\n"
    "The GPUs of a pair are in one process, and then in two. Prints a matrix of rates and one of "
    "latencies.\n",
    "  viaduct matrix\n"
    "  viaduct matrix 0,1,2,3 --mode MG --json matrix.json\n",
    matrixSheet, planMatrix};

}  // namespace

Command matrixCommand() { return commandOf(kMatrix); }

}  // namespace viaduct::app
