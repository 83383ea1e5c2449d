#include "measure/run/matrix.h"

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <viaduct/backend.h>

#include <algorithm>
#include <iterator>
#include <utility>

#include "cuda/driver.h"
#include "host/facts.h"
#include "measure/proof/memory_rate.h"
#include "measure/result/row_json.h"
#include "measure/result/text.h"
#include "measure/run/forked.h"
#include "measure/workload/mirror.h"

namespace viaduct::measure::matrix {

// The JSON reader and writer find the describe() functions below by argument-dependent lookup, so
// these stay outside of the unnamed namespace.
struct GpusOrError {
  std::vector<SeenGpu> gpus = {};
  std::string error = {};
};
struct RowsOrProblem {
  std::vector<Row> rows = {};
  std::string problem = {};
};
void describe(auto& json, base::Is<SeenGpu> auto& gpu) {
  json.need("gpu", gpu.number);
  json.need("name", gpu.name);
  json.need("peers", gpu.peers);
}
void describe(auto& json, base::Is<GpusOrError> auto& seen) {
  json.need("gpus", seen.gpus);
  json.may("error", seen.error);
}
void describe(auto& json, base::Is<RowsOrProblem> auto& measured) {
  json.need("rows", measured.rows);
  json.may("problem", measured.problem);
}

namespace {

// Runs `work` in a child process, and returns its value.
template <class Value>
Result<Value> valueOfChild(const std::function<Value()>& work, const StopFlag& stop) {
  VIADUCT_TRY(const std::string text,
              inChild([&] { return base::dumpJson(JsonWriter::of(work()), -1); }, stop));
  VIADUCT_TRY(const Json json, base::parseJson(text));
  JsonReader from(json);
  Value out;
  describe(from, out);
  VIADUCT_CHECK(from.status("measure", "the measuring process"));
  return out;
}

Result<std::vector<SeenGpu>> askDriver(const Settings& settings) {
  VIADUCT_TRY(const cuda::Driver* const driver, driverOf(settings));
  std::vector<cuda::Device> devices;
  for (std::uint32_t i = 0; i < driver->devices(); ++i) {
    VIADUCT_TRY(cuda::Device device, driver->device(i));
    devices.push_back(std::move(device));
  }
  std::vector<SeenGpu> out;
  for (std::uint32_t i = 0; i < devices.size(); ++i) {
    out.push_back({.number = i, .name = devices[i].name});
    for (std::uint32_t j = 0; j < devices.size(); ++j) {
      int can = 0;
      if (i != j) driver->api().deviceCanAccessPeer(&can, devices[i].handle, devices[j].handle);
      if (can != 0) out.back().peers.push_back(j);
    }
  }
  return out;
}

Error noSuchGpu(std::uint32_t number, std::size_t count) {
  return {.code = Code::kNotFound,
          .operation = "find a GPU",
          .detail = fmt::format("there is no GPU {}; the driver shows {}", number, count),
          .cause = "CUDA_VISIBLE_DEVICES, or a container, hides GPUs"};
}

// Returns the only share of the row's path if it is a copy by a GPU on one host. Otherwise, for
// example if the row was staged, returns null.
const ProvenShare* copyOf(const Row& row) {
  if (row.path.size() != 1 || row.path[0].stage != 0) return nullptr;
  const BackendFacts* const facts = backendFacts(row.path[0].backend);
  return facts != nullptr && facts->gpus ? &row.path[0] : nullptr;
}

std::string engineWords(const ProvenShare& copy) {
  if (copy.by_kernel == 0) return "copy engine";
  return copy.by_kernel >= copy.ops ? "kernel" : "kernel and copy engine";
}

bool reaches(const std::vector<SeenGpu>& gpus, std::uint32_t gpu, std::uint32_t other) {
  const auto at = std::ranges::find(gpus, gpu, &SeenGpu::number);
  return at != gpus.end() && std::ranges::find(at->peers, other) != at->peers.end();
}

// "cuda/direct, copy engine, peer access"; "staged: cuda/direct -> host -> tcp/socket"
std::string wayOf(const std::vector<SeenGpu>& gpus, const Cell& cell, const Row& row) {
  if (row.path.empty()) return {};
  const std::string ways = stagesWords(row, "+", [](const ProvenShare& share) {
    return fmt::format("{}/{}", share.backend, share.way);
  });
  const ProvenShare* const copy = copyOf(row);
  if (copy == nullptr) return row.path[0].stage == 0 ? ways : "staged: " + ways;
  std::string out = fmt::format("{}, {}", ways, engineWords(*copy));
  if (!cell.from || !cell.to || cell.from == cell.to) return out;
  // The GPU of the initiator copies.
  const bool writes = row.op == OpKind::kWrite;
  const bool direct =
      writes ? reaches(gpus, *cell.from, *cell.to) : reaches(gpus, *cell.to, *cell.from);
  return out + (direct ? ", peer access" : ", no peer access: through the host");
}

RunRequest ofCell(RunRequest run, const Cell& cell) {
  const bool writes = run.spec.rows.front().op == OpKind::kWrite;
  run.spec.initiator_gpu = writes ? cell.from : cell.to;
  run.spec.target_gpu = writes ? cell.to : cell.from;
  run.on_threads = cell.processes == 1;
  return run;
}

// Returns the member that a matrix's report names, which stands for this host.
RunMember thisHost() {
  const host::Facts facts = host::facts();
  return {.name = facts.hostname, .role = "all", .host = facts};
}

std::string wordsOf(const Cell& cell) {
  return fmt::format("{} to {}, {}", placeName(cell.from), placeName(cell.to),
                     cell.processes == 1 ? "one process" : "two processes");
}

// Measures a cell in a child process. A row that could not be measured has the reason.
std::vector<Row> measureCell(const RunRequest& run, const std::vector<SeenGpu>& gpus,
                             const Cell& cell, const StopFlag& stop) {
  auto measured = valueOfChild<RowsOrProblem>(
      [&] {
        RunOutcome outcome = runLocally(run, {}, stop);
        return RowsOrProblem{.rows = std::move(outcome.rows),
                             .problem = std::move(outcome.problem)};
      },
      stop);
  if (!measured) measured = RowsOrProblem{.problem = measured.error().text()};
  std::vector<Row> out = std::move(measured->rows);
  for (std::size_t i = 0; i < run.spec.rows.size(); ++i) {
    if (i == out.size()) {
      const Workload& row = run.spec.rows[i];
      out.push_back({.op = row.op,
                     .block_size = row.block_bytes,
                     .batch_size = row.batch,
                     .verdict = Verdict::kFailed,
                     .why = measured->problem});
    }
    out[i].kind = MatrixRow{.from = placeName(cell.from),
                            .to = placeName(cell.to),
                            .processes = cell.processes,
                            .figure = i == 0 ? "rate" : "latency",
                            .way = wayOf(gpus, cell, out[i])};
  }
  return out;
}

}  // namespace

Result<std::vector<SeenGpu>> seeGpus(const Settings& settings,
                                     const std::vector<std::uint32_t>& numbers,
                                     const StopFlag& stop) {
  VIADUCT_TRY(auto seen, valueOfChild<GpusOrError>(
                             [&]() -> GpusOrError {
                               auto gpus = askDriver(settings);
                               if (gpus) return {.gpus = *std::move(gpus)};
                               return {.error = gpus.error().text()};
                             },
                             stop));
  if (!seen.error.empty())
    return Error{.code = Code::kDevice, .operation = "matrix", .detail = seen.error};
  if (numbers.empty()) return std::move(seen.gpus);
  std::vector<SeenGpu> out;
  for (const std::uint32_t number : numbers) {
    if (number >= seen.gpus.size()) return noSuchGpu(number, seen.gpus.size());
    out.push_back(seen.gpus[number]);
  }
  return out;
}

std::string placeName(const Place& place) {
  return place ? fmt::format("GPU {}", *place) : std::string("host");
}

std::vector<Cell> cellsOf(const MatrixRequest& request) {
  std::vector<Place> places{{}};
  for (const SeenGpu& gpu : request.gpus) places.emplace_back(gpu.number);
  std::vector<Cell> out;
  for (const std::uint32_t count : request.processes)
    for (const Place& from : places)
      for (const Place& to : places)
        if (from || to) out.push_back({.from = from, .to = to, .processes = count});
  return out;
}

RunOutcome measureMatrix(const RunRequest& run, const MatrixRequest& request,
                         const Progress& progress, const StopFlag& stop) {
  const std::vector<Cell> cells = cellsOf(request);
  // Measures the memory rates here once, for the child processes of all cells.
  proof::memoryRates(largestWorkingSet(run.spec));
  RunOutcome out{.members = {thisHost()}};
  out.members.front().build = run.build;
  if (progress.joined) progress.joined(0, out.members);
  for (std::size_t i = 0; i < cells.size() && !stop.load(); ++i) {
    if (progress.turn) progress.turn(i, wordsOf(cells[i]));
    std::vector<Row> rows = measureCell(ofCell(run, cells[i]), request.gpus, cells[i], stop);
    if (stop.load()) break;  // the cell's measurement is not complete
    if (progress.finished) std::ranges::for_each(rows, progress.finished);
    std::ranges::move(rows, std::back_inserter(out.rows));
  }
  out.conclusions.resize(out.rows.size());
  out.believed = std::ranges::all_of(out.rows, [](const Row& row) { return isGood(row.verdict); });
  if (stop.load()) {
    out.end = RunEnd::kInterrupted;
    out.problem = "interrupted";
  }
  return out;
}

std::vector<std::string> gpuWords(const std::vector<SeenGpu>& gpus) {
  std::vector<std::string> out;
  out.reserve(gpus.size() + 1);
  for (const SeenGpu& gpu : gpus)
    out.push_back(gpu.peers.empty() ? gpu.name
                                    : fmt::format("{}, peer access to GPU {}", gpu.name,
                                                  fmt::join(gpu.peers, ", ")));
  if (gpus.size() == 1)
    out.emplace_back(
        "with one GPU there is no pair of two GPUs: the matrix has the GPU and host memory");
  return out;
}

}  // namespace viaduct::measure::matrix
