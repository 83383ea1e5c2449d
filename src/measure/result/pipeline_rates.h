// The rates of a pipeline and of its stages, and the conclusions from them. Threads: pure functions
// and plain values.
#pragma once

#include <cstddef>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "measure/result/row.h"

namespace viaduct::measure::pipeline {

// A stage, with a value for each round. Rates are in GB/s.
struct StageRates {
  std::string name = {};              // "load"
  std::string route = {};             // "file:/a -> host"
  std::string way = {};               // "file/uring": the mechanism of the stage alone
  std::vector<double> alone = {};     // while nothing else runs
  std::vector<double> together = {};  // while all stages run, each with its own memory
  std::vector<double> busy = {};      // part of the pipeline's time in which the stage had work
};

struct PipelineRates {
  std::vector<StageRates> stages = {};
  std::vector<double> whole = {};  // of one transfer through all stages. Empty: there is one stage
};
// Returns the rates of the rows of one pipeline.
PipelineRates ratesOf(std::span<const Row> rows);

// The slowest stage of one kind of measurement (alone, or together).
struct Slowest {
  std::size_t stage = 0;  // its index
  double gb_per_s = 0;
  // The other stages whose rates are higher by at most kTie. Each of them may be the slowest.
  std::vector<std::size_t> ties = {};
  // The rate of the pipeline divided by the rate of this stage.
  std::optional<double> efficiency = {};
};
inline constexpr double kTie = 0.05;

struct Conclusions {
  std::optional<Slowest> alone = {}, together = {};
  std::optional<std::size_t> busiest = {};  // the stage with the most work in the pipeline
};
// Uses the medians of the rounds. A conclusion whose rates have no round yet is left out.
Conclusions conclude(const PipelineRates& rates);

}  // namespace viaduct::measure::pipeline
