#include "arguments.h"

#include <fmt/format.h>

#include <chrono>
#include <cmath>
#include <string>

#include "doorbell.h"

namespace viaduct::python {
namespace {

double secondsOf(const char* operation, py::handle timeout) {
  if (PyFloat_Check(timeout.ptr()) != 0) return PyFloat_AS_DOUBLE(timeout.ptr());
  if (py::hasattr(timeout, "total_seconds")) return timeout.attr("total_seconds")().cast<double>();
  const double seconds = PyFloat_AsDouble(timeout.ptr());
  if (seconds != -1.0 || PyErr_Occurred() == nullptr) return seconds;
  PyErr_Clear();
  raiseWrongType(operation, timeout,
                 "give the timeout in seconds, as a datetime.timedelta, or None for no limit");
}

}  // namespace

Deadline deadlineOf(const char* operation, py::handle timeout) {
  if (timeout.is_none()) return Deadline::never();
  const double seconds = secondsOf(operation, timeout);
  if (std::isnan(seconds) || seconds < 0)
    raiseMisuse(operation, fmt::format("timeout is {} seconds", seconds),
                "give 0 or more seconds, or None for no limit");
  return std::chrono::duration<double>(seconds);
}

WaitLimit waitLimitOf(const char* operation, py::handle timeout) {
  if (timeout.is_none()) return {};
  if (py::isinstance<LoopWait>(timeout))
    return WaitLimit(timeout.cast<std::shared_ptr<LoopWait>>());
  return deadlineOf(operation, timeout);
}

NoteBytes::NoteBytes(const char* operation, py::handle from) {
  if (from.is_none()) {
    given_ = false;
    return;
  }
  if (PyUnicode_Check(from.ptr()) != 0) {
    Py_ssize_t length = 0;
    const char* text = PyUnicode_AsUTF8AndSize(from.ptr(), &length);
    if (text == nullptr) throw py::error_already_set();
    bytes_ = std::as_bytes(std::span(text, static_cast<std::size_t>(length)));
    return;
  }
  if (PyObject_GetBuffer(from.ptr(), &view_, PyBUF_SIMPLE) != 0) {
    view_.obj = nullptr;
    PyErr_Clear();
    raiseWrongType(operation, from, "give bytes, str, or a contiguous buffer");
  }
  bytes_ = {static_cast<const std::byte*>(view_.buf), static_cast<std::size_t>(view_.len)};
}

}  // namespace viaduct::python
