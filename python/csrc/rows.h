// Parses rows of descriptors and block numbers from Python callers: arrays by the buffer protocol,
// lists of tuples, ranges. Nothing here imports numpy. Threads: call with the GIL; a call releases
// the GIL while it reads a long array.
#pragma once

#include <pybind11/pybind11.h>
#include <viaduct/blocks.h>

#include <cstddef>
#include <cstdint>
#include <vector>

namespace viaduct::python {

namespace py = pybind11;

// The rows (address, bytes, device) or (address, bytes, device, stride, count) of a list. The
// parser does not check for empty blocks or overlaps.
struct Rows {
  std::vector<Extent> extents = {};         // from rows of three numbers
  std::vector<Run> runs = {};               // from rows of five numbers
  std::uint64_t device = 0;                 // the device of every row if `devices` is empty
  std::vector<std::uint64_t> devices = {};  // otherwise the device of each row

  std::size_t count() const { return extents.size() + runs.size(); }
  std::uint64_t deviceOf(std::size_t row) const { return devices.empty() ? device : devices[row]; }
  // Records the device of the row that the caller adds next.
  void addDevice(std::uint64_t of_next);
};

// Parses a non-negative integer of Python or numpy. The text of a TypeError or ValueError begins
// with `what`, the name of the value.
std::uint64_t parseUnsigned(py::handle value, const char* what);

// True for an object that parseRows() reads through the buffer protocol, and for a CPU tensor.
bool isArray(py::handle source);
// parseRows() reads an N×3 or N×5 array of any integers, also a strided array, or a sequence of
// tuples. Raises TypeError for another type, and ValueError for a wrong number or shape. kToo also
// accepts rows (address, bytes), which lie on device 0.
enum class Pairs : bool { kRefused, kToo };
Rows parseRows(py::handle source, Pairs pairs = Pairs::kRefused);

// Parses block numbers from a list, a range, or a one-dimensional array of any integers, also a
// strided array.
std::vector<std::uint32_t> parseIndices(py::handle source);

}  // namespace viaduct::python
