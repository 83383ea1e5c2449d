// From Result to exception. Threads: call with the GIL.
#pragma once

#include <pybind11/pybind11.h>
#include <viaduct/result.h>

#include <string>
#include <string_view>
#include <utility>

namespace viaduct::python {

namespace py = pybind11;

// The exception of viaduct/_errors.py for it.
py::object exceptionOf(const Error& error);
[[noreturn]] void raise(const Error& error);
// InvalidError: the call cannot be right.
[[noreturn]] void raiseMisuse(const char* operation, std::string detail, std::string remedy = {});
// TypeError: the argument is of a type that the call does not take.
[[noreturn]] void raiseWrongType(const char* operation, py::handle argument,
                                 std::string_view remedy);

template <class T>
T valueOf(Result<T> result) {
  if (!result) raise(result.error());
  return *std::move(result);
}
inline void check(const Status& status) {
  if (!status) raise(status.error());
}

}  // namespace viaduct::python
