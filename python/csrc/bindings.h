// What each file of this folder adds to the module. Threads: the importing one, which has the GIL.
#pragma once

#include <pybind11/pybind11.h>

namespace viaduct::python {

namespace py = pybind11;

}  // namespace viaduct::python
