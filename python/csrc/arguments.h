// What callers pass in: times, bytes, memory. Threads: call with the GIL.
#pragma once

#include <pybind11/pybind11.h>
#include <viaduct/deadline.h>

#include <cstddef>
#include <optional>
#include <span>

namespace viaduct::python {

namespace py = pybind11;

// Seconds as a number, or a timedelta; None: no limit.
Deadline deadlineOf(const char* operation, py::handle timeout);

// The bytes of a note: bytes, str (as UTF-8), or a buffer that is kept meanwhile.
class NoteBytes {
 public:
  NoteBytes(const char* operation, py::handle from);
  NoteBytes(const NoteBytes&) = delete;
  NoteBytes& operator=(const NoteBytes&) = delete;
  ~NoteBytes() {
    if (view_.obj != nullptr) PyBuffer_Release(&view_);
  }
  std::span<const std::byte> bytes() const { return bytes_; }
  bool given() const { return given_; }  // not None

 private:
  Py_buffer view_{};
  std::span<const std::byte> bytes_;
  bool given_ = true;
};

}  // namespace viaduct::python
