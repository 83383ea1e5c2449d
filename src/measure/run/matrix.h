// The matrix of a host's GPUs: each ordered pair of GPUs, each GPU with itself, and each GPU with
// host memory. Threads: one; measureMatrix() and seeGpus() fork, so their caller has no other
// thread and no agent.
#pragma once

#include <viaduct/settings.h>

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "measure/run/run.h"

namespace viaduct::measure::matrix {

struct SeenGpu {
  std::uint32_t number = 0;
  std::string name = {};                  // "GPU 0 (NVIDIA H100 80GB HBM3)"
  std::vector<std::uint32_t> peers = {};  // the GPUs whose memory this one can address
};

// Returns the GPUs with these numbers, or all GPUs if `numbers` is empty. Fails if there is no
// driver, no GPU, or no GPU with one of the numbers.
Result<std::vector<SeenGpu>> seeGpus(const Settings& settings,
                                     const std::vector<std::uint32_t>& numbers,
                                     const StopFlag& stop);

// One end of a copy: the number of a GPU. Nothing: host memory.
using Place = std::optional<std::uint32_t>;
std::string placeName(const Place& place);  // "host", "GPU 0"

// The copies from one place to another, by one process or by two.
struct Cell {
  Place from = {}, to = {};
  std::uint32_t processes = 1;
};

struct MatrixRequest {
  std::vector<std::uint32_t> numbers = {};    // of the GPUs; empty: all
  std::vector<SeenGpu> gpus = {};             // from seeGpus()
  std::vector<std::uint32_t> processes = {};  // 1: one process has both ends; 2: each has one
};

// Returns the cells in the order in which they are measured.
std::vector<Cell> cellsOf(const MatrixRequest& request);

// Measures the cells, one after the other, until `stop` is set. For each cell, measures the two
// rows of `run`, a rate and a latency, between the cell's GPUs. Calls Progress::turn for each cell.
// The rows of a failed cell have the reason.
RunOutcome measureMatrix(const RunRequest& run, const MatrixRequest& request,
                         const Progress& progress, const StopFlag& stop);

// Returns lines that name the GPUs, and say which of them reach one another.
std::vector<std::string> gpuWords(const std::vector<SeenGpu>& gpus);

}  // namespace viaduct::measure::matrix
