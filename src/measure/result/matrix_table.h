// The tables of a matrix of GPUs. Threads: pure functions.
#pragma once

#include <span>

#include "measure/result/row.h"
#include "measure/result/table_sink.h"

namespace viaduct::measure::matrix {

void show(std::span<const Row> rows, TableSink& sink);

}  // namespace viaduct::measure::matrix
