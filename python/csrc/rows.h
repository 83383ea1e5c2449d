// Parses rows of descriptors and block numbers from Python callers: arrays by the buffer protocol,
// lists of tuples, ranges. Nothing here imports numpy. Threads: call with the GIL; a call releases
// the GIL while it reads a long array.
#pragma once

#include <pybind11/pybind11.h>

#include <cstdint>
#include <vector>

#include "nixl/rows.h"

namespace viaduct::python {

namespace py = pybind11;

using viaduct::nixl::Rows;

// Parses a non-negative integer of Python or numpy. The text of a TypeError or ValueError begins
// with `what`, the name of the value.
std::uint64_t parseUnsigned(py::handle value, const char* what);

// True for an object that parseRows() reads through the buffer protocol, and for a CPU tensor.
bool isArray(py::handle source);
// parseRows() reads an N×3, N×4 or N×5 array of any integers, also a strided array, or a sequence
// of tuples. The fourth column of an N×4 array is 0, in the place of metadata. Raises TypeError for
// another type, and ValueError for a wrong number or shape. kToo accepts rows (address,
// bytes), which lie on device 0, and no N×4 array.
enum class Pairs : bool { kRefused, kToo };
Rows parseRows(py::handle source, Pairs pairs = Pairs::kRefused);

// Parses block numbers from a list, a range, or a one-dimensional array of any integers, also a
// strided array.
std::vector<std::uint32_t> parseIndices(py::handle source);

}  // namespace viaduct::python
