// Rows of descriptors and block numbers, as Python callers pass them: arrays by the buffer
// protocol, lists of tuples, ranges. Nothing here imports numpy. Threads: with the GIL; long arrays
// are read without it.
#pragma once

#include <pybind11/pybind11.h>
#include <viaduct/blocks.h>

#include <cstddef>
#include <cstdint>
#include <vector>

namespace viaduct::python {

namespace py = pybind11;

// The rows (address, bytes, device) or (address, bytes, device, stride, count) of a list. The
// parser does not look for empty blocks and overlaps.
struct Rows {
  std::vector<Extent> extents = {};         // of rows of three
  std::vector<Run> runs = {};               // of rows of five
  std::uint64_t device = 0;                 // of every row, where `devices` is empty
  std::vector<std::uint64_t> devices = {};  // else one for each row

  std::size_t count() const { return extents.size() + runs.size(); }
  std::uint64_t deviceOf(std::size_t row) const { return devices.empty() ? device : devices[row]; }
  // Takes the device of the row that is added next.
  void addDevice(std::uint64_t of_next);
};

// An integer that is not negative, of Python's or of numpy's. TypeError or ValueError name `what`.
std::uint64_t parseUnsigned(py::handle value, const char* what);

// True for what parseRows() reads through the buffer protocol, and for a tensor of the CPU.
bool isArray(py::handle source);
// An N×3 or N×5 array of any integers, also strided, or a sequence of tuples of three or of five.
// TypeError where it is something else, ValueError where a number or the shape is wrong.
enum class Pairs : bool { kRefused, kToo };  // (address, bytes), which is then of device 0
Rows parseRows(py::handle source, Pairs pairs = Pairs::kRefused);

// A list, a range, or a one-dimensional array of any integers, also strided.
std::vector<std::uint32_t> parseIndices(py::handle source);

}  // namespace viaduct::python
