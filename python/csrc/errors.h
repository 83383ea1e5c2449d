// Turns failed Results into Python exceptions. Threads: call with the GIL.
#pragma once

#include <pybind11/pybind11.h>
#include <viaduct/result.h>

#include <string>
#include <string_view>
#include <utility>

namespace viaduct::python {

namespace py = pybind11;

// Makes the exception of viaduct/_errors.py that matches the error's code.
py::object exceptionOf(const Error& error);
// Sets the exception for the interpreter.
void setError(const Error& error);
[[noreturn]] void raise(const Error& error);
// Raises InvalidError: the arguments of the call cannot be right.
[[noreturn]] void raiseMisuse(const char* operation, std::string detail, std::string remedy = {});
// Raises TypeError: the call does not accept an argument of this type.
[[noreturn]] void raiseWrongType(const char* operation, py::handle argument,
                                 std::string_view remedy);

// The name of an object's type, for an error.
inline const char* typeName(py::handle object) { return Py_TYPE(object.ptr())->tp_name; }
// Decodes UTF-8. Texts of the system and of other processes may contain other bytes; `errors` is
// Python's name of the way to handle these.
py::object decoded(std::string_view text, const char* errors);

template <class T>
T valueOf(Result<T> result) {
  if (!result) raise(result.error());
  return *std::move(result);
}
inline void check(const Status& status) {
  if (!status) raise(status.error());
}

}  // namespace viaduct::python
