// The table of swapping. Threads: pure functions.
#pragma once

#include <span>

#include "measure/result/row.h"
#include "measure/result/table_sink.h"

namespace viaduct::measure::swap {

void show(std::span<const Row> rows, TableSink& sink);

}  // namespace viaduct::measure::swap
