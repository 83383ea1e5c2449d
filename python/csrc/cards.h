// Reads what a card grants from keyword arguments of Python. Threads: call with the GIL.
#pragma once

#include <pybind11/pybind11.h>
#include <viaduct/card.h>

#include <string>

namespace viaduct::python {

namespace py = pybind11;

// `until`: None, seconds since 1970, or a datetime.
Grant grantOf(const char* operation, const std::string& pins, const std::string& access,
              const py::object& until, const std::string& name);

}  // namespace viaduct::python
