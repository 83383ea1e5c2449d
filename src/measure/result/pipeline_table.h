// The table of a pipeline, and its conclusions. Threads: pure functions.
#pragma once

#include <span>
#include <string>
#include <vector>

#include "measure/result/row.h"
#include "measure/result/table_sink.h"

namespace viaduct::measure::pipeline {

// Returns lines about the bottleneck, the efficiency and the checked transfers. Empty until every
// stage was measured alone.
std::vector<std::string> conclusionsOf(std::span<const Row> rows);
// Shows the table, or nothing until the first stage was measured alone.
void show(std::span<const Row> rows, TableSink& sink);

}  // namespace viaduct::measure::pipeline
