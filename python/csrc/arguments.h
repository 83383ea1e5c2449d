// Converts arguments of Python callers: timeouts and the bytes of notes. Threads: call with the
// GIL.
#pragma once

#include <pybind11/pybind11.h>
#include <viaduct/deadline.h>

#include <cstddef>
#include <optional>
#include <span>

#include "errors.h"
#include "gil.h"

namespace viaduct::python {

namespace py = pybind11;

// Converts a number of seconds or a timedelta to a deadline. None means no limit.
Deadline deadlineOf(const char* operation, py::handle timeout);

// Converts the timeout of a call that waits. The timeout may also be a LoopWait.
WaitLimit waitLimitOf(const char* operation, py::handle timeout);

// The bytes of a card, note or ticket.
template <class Bytes>
py::bytes bytesObject(const Bytes& bytes) {
  return {reinterpret_cast<const char*>(bytes.data()), bytes.size()};
}

// Runs the waiting function `call(deadline)` without the GIL, and raises its error.
template <class Call>
auto waitUpTo(const char* operation, py::handle timeout, const Call& call) {
  return valueOf(waitUnlocked(waitLimitOf(operation, timeout), call));
}

// Reads the bytes of a note from bytes, str (as UTF-8) or a buffer. The object holds the buffer
// open as long as it lives.
class NoteBytes {
 public:
  NoteBytes(const char* operation, py::handle from);
  NoteBytes(const NoteBytes&) = delete;
  NoteBytes& operator=(const NoteBytes&) = delete;
  ~NoteBytes() {
    if (view_.obj != nullptr) PyBuffer_Release(&view_);
  }
  std::span<const std::byte> bytes() const { return bytes_; }
  bool given() const { return given_; }  // false if the caller passed None

 private:
  Py_buffer view_{};
  std::span<const std::byte> bytes_;
  bool given_ = true;
};

}  // namespace viaduct::python
