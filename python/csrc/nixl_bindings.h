// Declares the functions that add NIXL's Python classes to the module, and common parts of these
// classes. Threads: call with the GIL.
#pragma once

#include <pybind11/pybind11.h>

#include <string_view>

#include "errors.h"

namespace viaduct::nixl {

namespace py = pybind11;
using python::typeName;

void bindStatus(py::module_& module);
void bindLists(py::module_& module);
void bindAgent(py::module_& module);
// Closes every open agent. The interpreter calls this function at exit.
void closeAgents();

// Return the Python object of kSuccess or kInProgress. Each call returns the same object, so that
// callers may compare with `is`.
py::object successObject();
py::object inProgressObject();
// Makes a Python str of an agent's name. A name from another process may not be valid UTF-8.
inline py::object nameObject(std::string_view name) {
  return python::decoded(name, "surrogateescape");
}

}  // namespace viaduct::nixl
