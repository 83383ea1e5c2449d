// Declares the status numbers and the exceptions of the `nixl` module. Threads: call with the GIL.
#pragma once

#include <pybind11/pybind11.h>
#include <viaduct/result.h>

#include <string>
#include <utility>

namespace viaduct::python::nixl {

namespace py = pybind11;

// Programs compare these numbers with NIXL's, so the numbers must not change.
enum class Outcome : int {
  kInProgress = 1,
  kSuccess = 0,
  kNotPosted = -1,
  kInvalid = -2,
  kBackend = -3,
  kNotFound = -4,
  kMismatch = -5,
  kNotAllowed = -6,
  kRepostActive = -7,
  kUnknown = -8,
  kNotSupported = -9,
  kRemoteDisconnect = -10,
  kCancelled = -11,
  kNoTelemetry = -12,
};

// Raises the exception of that outcome. The text of the exception begins with the outcome's name.
[[noreturn]] void fail(Outcome outcome, const std::string& text);
[[noreturn]] void fail(const Error& error);

template <class T>
T valueOf(Result<T> result) {
  if (!result) fail(result.error());
  return *std::move(result);
}
inline void check(const Status& status) {
  if (!status) fail(status.error());
}

// Return the Python object of kSuccess or kInProgress. Each call returns the same object, so that
// callers may compare with `is`.
py::object successObject();
py::object inProgressObject();

void bindStatus(py::module_& module);

}  // namespace viaduct::python::nixl
