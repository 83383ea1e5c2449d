// What each file of this folder adds to the module. Threads: the importing one, which has the GIL.
#pragma once

#include <pybind11/pybind11.h>

namespace viaduct::python {

namespace py = pybind11;

void bindNixl(py::module_& module);

}  // namespace viaduct::python
