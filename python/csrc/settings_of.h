// Reads an agent's settings from Python keywords. Threads: call with the GIL.
#pragma once

#include <pybind11/pybind11.h>
#include <viaduct/settings.h>

namespace viaduct::python {

namespace py = pybind11;

// Applies keywords such as name="a", deadline=5. The environment variables VIADUCT_* give all other
// settings, or the defaults if the caller passes environment=False.
Settings settingsOf(const py::kwargs& given);

}  // namespace viaduct::python
