// Settings from keywords. Threads: with the GIL.
#pragma once

#include <pybind11/pybind11.h>
#include <viaduct/settings.h>

namespace viaduct::python {

namespace py = pybind11;

// {name="a", deadline=5}, on top of the environment, or of the defaults with environment=False.
Settings settingsOf(const py::kwargs& given);

}  // namespace viaduct::python
