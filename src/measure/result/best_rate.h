// Which rate stands for several rows. Pages and conclusions ask here, so that they name the same
// rate. A rate is gb_per_s: that of all pairs of a row together, and the median of the row's parts
// or repeats. Threads: pure functions.
#pragma once

#include <optional>
#include <span>
#include <string>
#include <vector>

#include "measure/result/row.h"

namespace viaduct::measure {

// Returns what the row measures: backend, op, scheme, blocks and all else that tells rows apart.
// Rows with equal texts repeat one another. Without the backend, the allocation of host memory and
// the numbers of GPUs are left out too, because raw tools do not name them, and so are the places
// of a pipeline.
std::string identityOf(const Row& row, bool with_backend = true);

// Makes one row of rows that repeat one another: the one in the middle, with the medians of their
// rates and latencies. Rows that cannot be used only count if there are no others.
Row oneOf(const std::vector<const Row*>& repeats);
// Keeps the order, and makes one row of those that repeat one another.
std::vector<Row> withoutRepeats(std::span<const Row> rows);

// False for rows that only serve another row: a stage of a pipeline, the bulk row beside a paged
// one, one driver call for each block, a latency of a matrix.
bool standsForItself(const Row& row);
// Returns the row with the highest rate, of those that can be used and stand for themselves.
std::optional<Row> bestRow(std::span<const Row> rows);

}  // namespace viaduct::measure
