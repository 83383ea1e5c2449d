// The table of a pipeline, and its conclusions. Threads: pure functions.
#pragma once

#include <span>
#include <string>
#include <vector>

#include "measure/result/row.h"
#include "measure/result/table_sink.h"

namespace viaduct::measure::pipeline {

// Returns lines about the bottleneck, the efficiency and the checked transfers. Empty without a
// complete round.
std::vector<std::string> conclusionsOf(std::span<const Row> rows);
// Shows the table, or nothing if no stage was measured alone in a complete round.
void show(std::span<const Row> rows, TableSink& sink);

}  // namespace viaduct::measure::pipeline
