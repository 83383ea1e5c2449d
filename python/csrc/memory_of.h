// The memory behind a Python object: buffers, arrays and tensors of any library, without importing
// one. Threads: call with the GIL.
#pragma once

#include <pybind11/pybind11.h>
#include <viaduct/blocks.h>

#include <cstdint>
#include <vector>

namespace viaduct::python {

namespace py = pybind11;

struct ObjectMemory {
  std::uint64_t address = 0;
  std::vector<std::int64_t> shape = {};
  std::vector<std::int64_t> strides = {};  // in bytes
  std::int64_t item_bytes = 1;
  bool read_only = false;
  py::object keeper = {};  // the memory stays where it is while this lives

  // All bytes in one piece, in whatever order of axes. From axis `first` on.
  bool isDense(std::size_t first = 0) const;
  std::uint64_t bytes(std::size_t first = 0) const;
};

// Takes a buffer (bytearray, mmap, numpy), or __array_interface__, or DLPack (torch, jax). Memory
// that only a GPU reaches is refused with UnsupportedError, anything else with InvalidError.
ObjectMemory memoryOf(const char* operation, py::handle object);
// The same for memory in one piece.
ObjectMemory denseMemoryOf(const char* operation, py::handle object);
// One block for each index of the first axis.
Run rowsOf(const char* operation, const ObjectMemory& memory);

}  // namespace viaduct::python
