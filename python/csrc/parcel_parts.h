// Converts the names of parts of a parcel to Python. Threads: call with the GIL.
#pragma once

#include <pybind11/pybind11.h>
#include <viaduct/parcel.h>

#include <cstddef>
#include <vector>

namespace viaduct::python {

namespace py = pybind11;

inline py::tuple tupleOf(ParcelPart part) { return py::make_tuple(part.rank, part.component); }
inline py::tuple tupleOf(const std::vector<ParcelPart>& parts) {
  py::tuple out(parts.size());
  for (std::size_t i = 0; i < parts.size(); ++i) out[i] = tupleOf(parts[i]);
  return out;
}

}  // namespace viaduct::python
