// The matrix of a host's GPUs: each ordered pair of GPUs, each GPU with itself, and each GPU with
// host memory. Threads: one; measureMatrix() and seeGpus() fork, so their caller has no other
// thread and no agent.
#pragma once

#include <viaduct/settings.h>

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "base/stop.h"
#include "measure/result/row.h"
#include "measure/run/run.h"

namespace viaduct::measure::matrix {

struct SeenGpu {
  std::uint32_t number = 0;
  std::string name = {};                  // "GPU 0 (NVIDIA H100 80GB HBM3)"
  std::vector<std::uint32_t> peers = {};  // the GPUs whose memory this one can address
};

// Returns the GPUs with these numbers, or all of them. Fails if there is no driver, no GPU, or no
// GPU with one of the numbers.
Result<std::vector<SeenGpu>> seeGpus(const Settings& settings,
                                     const std::vector<std::uint32_t>& numbers,
                                     const base::StopFlag& stop);

// One end of a copy. Nothing: host memory.
using Place = std::optional<std::uint32_t>;
std::string placeName(const Place& place);  // "host", "GPU 0"

// The copies from one place to another.
struct Cell {
  Place from = {}, to = {};
  std::uint32_t processes = 1;
  // How the bytes moved: "cuda/direct, copy engine, peer access". Empty: not measured.
  std::string rate_way = {}, latency_way = {};
  std::optional<Row> rate = {}, latency = {};
  std::string problem = {};  // why a figure is missing or not valid
};

struct GpuMatrix {
  std::string version = {}, started = {}, command = {}, hostname = {};
  std::string end = "complete";
  Workload rate = {}, latency = {};  // the rows of each cell
  std::vector<SeenGpu> gpus = {};
  std::vector<Cell> cells = {};
};

// Returns the cells in the order in which they are measured. `processes`: 1 if one process has both
// ends, 2 if each end is in a process of its own.
std::vector<Cell> cellsOf(const std::vector<SeenGpu>& gpus,
                          const std::vector<std::uint32_t>& processes);

// Fills in the host's name and the cells, one after the other, until `stop` is set. `run` is the
// run of a cell, without rows and GPUs. `started` gets the number of each cell.
void measureMatrix(const RunRequest& run, GpuMatrix& matrix,
                   const std::function<void(std::size_t cell)>& started,
                   const base::StopFlag& stop);

// True if every cell was measured and each of its rows can be used.
bool allGood(const GpuMatrix& matrix);

// The tables have at most `width` columns, if the figures allow.
std::string matrixText(const GpuMatrix& matrix, std::size_t width);
std::string matrixJson(const GpuMatrix& matrix);

}  // namespace viaduct::measure::matrix
