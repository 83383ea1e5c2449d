// Converts the block tables and selections of KV caches from and to Python. Threads: call with the
// GIL.
#pragma once

#include <pybind11/pybind11.h>
#include <viaduct/kv.h>

#include <vector>

namespace viaduct::python {

namespace py = pybind11;

// Parses a row (source blocks, destination blocks) or (source blocks, destination blocks, first
// token) for each group. None: no blocks of this group.
std::vector<KvBlocks> blockTablesOf(const py::sequence& groups);
// The pair (source, destination) of Blocks.
py::tuple tupleOf(const KvSelections& taken);

}  // namespace viaduct::python
