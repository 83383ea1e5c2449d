// Chooses the rate that represents several rows. Pages and conclusions use these functions, so that
// both name the same rate. A rate is Row::gb_per_s: of all pairs together, the median of the row's
// parts or repeats. Threads: pure functions.
#pragma once

#include <optional>
#include <span>
#include <string>
#include <vector>

#include "measure/result/row.h"

namespace viaduct::measure {

// Returns what the row measures: backend, op, scheme, blocks and all else that tells rows apart.
// Rows with equal texts repeat one another. If `with_backend` is false, also leaves out the kind of
// host memory and the numbers of GPUs, because raw tools do not name them. The list of a pipeline's
// places is then left out too.
std::string identityOf(const Row& row, bool with_backend = true);

// Makes one row of rows that repeat one another: the row of middle rate, with the medians of rate,
// p50 and p99. Rows that cannot be used only count if no row can be used.
Row oneOf(const std::vector<const Row*>& repeats);
// Makes one row of all rows that repeat one another, and keeps the order.
std::vector<Row> withoutRepeats(std::span<const Row> rows);

// False for rows that only serve another row. Examples: a stage of a pipeline, the bulk row beside
// a paged row, one driver call for each block, a latency of a matrix.
bool standsForItself(const Row& row);
// Returns the fastest of the rows that can be used and for which standsForItself() is true.
std::optional<Row> bestRow(std::span<const Row> rows);

}  // namespace viaduct::measure
