#include "measure/matrix/matrix.h"

#include <fmt/format.h>
#include <viaduct/backend.h>

#include <algorithm>
#include <utility>

#include "cuda/driver.h"
#include "host/facts.h"
#include "measure/load/mirror.h"
#include "measure/matrix/forked.h"
#include "measure/result/row_json.h"
#include "measure/result/text.h"

namespace viaduct::measure::matrix {

// The JSON reader and writer find these functions by argument-dependent lookup, so they stay
// outside of the unnamed namespace.
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
Result<Value> valueOfChild(const std::function<Value()>& work, const base::StopFlag& stop) {
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

// The part of the row's path that copies between GPUs and host memory on one host. Null: there is
// none, or the row was staged.
const ProvenShare* copyOf(const Row& row) {
  if (row.path.size() != 1 || row.path[0].stage != 0) return nullptr;
  const BackendFacts* const facts = backendFacts(row.path[0].backend);
  return facts != nullptr && facts->gpus ? &row.path[0] : nullptr;
}

std::string engineWords(const ProvenShare& copy) {
  if (copy.by_kernel == 0) return "copy engine";
  return copy.by_kernel >= copy.ops ? "kernel" : "kernel and copy engine";
}

bool reaches(const GpuMatrix& matrix, std::uint32_t gpu, std::uint32_t other) {
  const auto at = std::ranges::find(matrix.gpus, gpu, &SeenGpu::number);
  return at != matrix.gpus.end() && std::ranges::find(at->peers, other) != at->peers.end();
}

// "cuda/direct, copy engine, peer access"; "staged: cuda/direct -> host -> tcp/socket"
std::string wayOf(const GpuMatrix& matrix, const Cell& cell, const Row& row) {
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
      writes ? reaches(matrix, *cell.from, *cell.to) : reaches(matrix, *cell.to, *cell.from);
  return out + (direct ? ", peer access" : ", no peer access: through the host");
}

RunRequest requestOf(RunRequest run, const GpuMatrix& matrix, const Cell& cell) {
  const bool writes = matrix.rate.op == OpKind::kWrite;
  run.spec.rows = {matrix.rate, matrix.latency};
  run.spec.initiator_gpu = writes ? cell.from : cell.to;
  run.spec.target_gpu = writes ? cell.to : cell.from;
  run.on_threads = cell.processes == 1;
  return run;
}

RowsOrProblem runRows(const RunRequest& request, const base::StopFlag& stop) {
  RunOutcome outcome = runLocally(request, {}, stop);
  RowsOrProblem out{.rows = std::move(outcome.rows), .problem = std::move(outcome.problem)};
  for (const Row& row : out.rows)
    if (out.problem.empty() && !isGood(row.verdict))
      out.problem = fmt::format("{}: {}", verdictName(row.verdict), row.why);
  return out;
}

void measureCell(const RunRequest& run, const GpuMatrix& matrix, Cell& cell,
                 const base::StopFlag& stop) {
  const RunRequest request = requestOf(run, matrix, cell);
  auto measured = valueOfChild<RowsOrProblem>([&] { return runRows(request, stop); }, stop);
  if (!measured) measured = RowsOrProblem{.problem = measured.error().text()};
  if (!stop.load()) cell.problem = std::move(measured->problem);
  const auto take = [&](std::size_t number, std::optional<Row>& row, std::string& way) {
    if (number >= measured->rows.size() || !measured->rows[number].gb_per_s) return;
    row = std::move(measured->rows[number]);
    way = wayOf(matrix, cell, *row);
  };
  take(0, cell.rate, cell.rate_way);
  take(1, cell.latency, cell.latency_way);
}

}  // namespace

Result<std::vector<SeenGpu>> seeGpus(const Settings& settings,
                                     const std::vector<std::uint32_t>& numbers,
                                     const base::StopFlag& stop) {
  VIADUCT_TRY(auto seen, valueOfChild<GpusOrError>(
                             [&]() -> GpusOrError {
                               auto gpus = askDriver(settings);
                               if (gpus) return {.gpus = *std::move(gpus)};
                               return {.error = gpus.error().text()};
                             },
                             stop));
  if (!seen.error.empty())
    return Error{.code = Code::kDevice, .operation = "--gpu_matrix", .detail = seen.error};
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

std::vector<Cell> cellsOf(const std::vector<SeenGpu>& gpus,
                          const std::vector<std::uint32_t>& processes) {
  std::vector<Place> places{{}};
  for (const SeenGpu& gpu : gpus) places.emplace_back(gpu.number);
  std::vector<Cell> out;
  for (const std::uint32_t count : processes)
    for (const Place& from : places)
      for (const Place& to : places)
        if (from || to) out.push_back({.from = from, .to = to, .processes = count});
  return out;
}

void measureMatrix(const RunRequest& run, GpuMatrix& matrix,
                   const std::function<void(std::size_t cell)>& started,
                   const base::StopFlag& stop) {
  matrix.hostname = host::facts().hostname;
  for (std::size_t i = 0; i < matrix.cells.size() && !stop.load(); ++i) {
    started(i);
    measureCell(run, matrix, matrix.cells[i], stop);
  }
  if (stop.load()) matrix.end = "interrupted";
}

bool allGood(const GpuMatrix& matrix) {
  return std::ranges::all_of(matrix.cells, [](const Cell& cell) {
    return cell.rate && cell.latency && cell.problem.empty();
  });
}

}  // namespace viaduct::measure::matrix
