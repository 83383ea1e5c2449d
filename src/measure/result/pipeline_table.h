// The rows of a pipeline as text for people. Threads: pure functions.
#pragma once

#include <span>
#include <string>
#include <vector>

#include "measure/result/row.h"

namespace viaduct::measure::pipeline {

// The bottleneck, the efficiency and the number of checked transfers. Empty without a whole round.
std::vector<std::string> conclusionsOf(std::span<const Row> rows);
// The table has at most `width` columns, if the figures allow.
std::string pipelineText(std::span<const Row> rows, std::size_t width);

}  // namespace viaduct::measure::pipeline
