#include <fmt/format.h>

#include <array>
#include <cstddef>
#include <exception>
#include <new>
#include <utility>

#include "nixl/status.h"
#include "nixl_bindings.h"

namespace viaduct::nixl {
namespace {

// These objects live as long as the process, because an exception may still propagate while Python
// destroys the module.
std::array<PyObject*, kOutcomeNames.size()> exceptions{};
PyObject *success = nullptr, *in_progress = nullptr;

void setFailure(const Failure& failure) {
  std::size_t row = 0;
  while (kOutcomeNames[row].outcome != failure.outcome()) ++row;
  // Texts of the system and names of peers may not be UTF-8.
  PyErr_SetObject(exceptions[row], python::decoded(failure.what(), "backslashreplace").ptr());
}

void translate(std::exception_ptr thrown) {
  try {
    std::rethrow_exception(std::move(thrown));
  } catch (const Failure& failure) {
    setFailure(failure);
  }
}

}  // namespace

void setException() {
  try {
    throw;
  } catch (const Failure& failure) {
    setFailure(failure);
  } catch (py::error_already_set& raised) {
    raised.restore();
  } catch (const py::builtin_exception& raised) {
    raised.set_error();
  } catch (const std::bad_alloc&) {
    PyErr_NoMemory();
  } catch (const std::exception& other) {
    PyErr_SetString(PyExc_RuntimeError, other.what());
  }
}

py::object successObject() { return py::reinterpret_borrow<py::object>(success); }
py::object inProgressObject() { return py::reinterpret_borrow<py::object>(in_progress); }

void bindStatus(py::module_& module) {
  py::enum_<Outcome> outcomes(module, "nixl_status_t",
                              "The outcome of a call, or the state of a transfer.");
  for (const OutcomeName& row : kOutcomeNames) outcomes.value(row.text, row.outcome);
  outcomes.export_values();
  success = py::object(module.attr("NIXL_SUCCESS")).release().ptr();
  in_progress = py::object(module.attr("NIXL_IN_PROG")).release().ptr();
  for (std::size_t row = 0; row < kOutcomeNames.size(); ++row) {
    const char* const name = kOutcomeNames[row].exception;
    if (name == nullptr) continue;
    exceptions[row] = PyErr_NewException(fmt::format("nixl._bindings.{}", name).c_str(),
                                         PyExc_Exception, nullptr);
    if (exceptions[row] == nullptr) throw py::error_already_set();
    module.attr(name) = py::reinterpret_borrow<py::object>(exceptions[row]);
  }
  py::register_exception_translator(translate);
}

}  // namespace viaduct::nixl
