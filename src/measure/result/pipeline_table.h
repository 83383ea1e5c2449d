// The table of a pipeline, and its conclusions. Threads: pure functions.
#pragma once

#include <span>
#include <string>
#include <vector>

#include "measure/result/row.h"
#include "measure/result/table_sink.h"

namespace viaduct::measure::pipeline {

// The bottleneck, the efficiency and the number of checked transfers. Empty without a whole round.
std::vector<std::string> conclusionsOf(std::span<const Row> rows);
// Nothing without a whole round.
void show(std::span<const Row> rows, TableSink& sink);

}  // namespace viaduct::measure::pipeline
