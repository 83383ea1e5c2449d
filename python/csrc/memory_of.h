// Finds the memory behind a buffer, array or tensor of any Python library, without importing the
// library. Threads: call with the GIL.
#pragma once

#include <pybind11/pybind11.h>
#include <viaduct/blocks.h>

#include <cstdint>
#include <optional>
#include <vector>

namespace viaduct::python {

namespace py = pybind11;

struct ObjectMemory {
  std::uint64_t address = 0;
  std::vector<std::int64_t> shape = {};
  std::vector<std::int64_t> strides = {};  // in bytes
  std::int64_t item_bytes = 1;
  bool read_only = false;
  std::optional<std::uint32_t> gpu = {};  // whose memory it is; nothing: host memory
  py::object keeper = {};                 // keeps the memory valid and in its place

  // True if the axes from `first` on cover one contiguous piece of memory, in any order of axes.
  bool isDense(std::size_t first = 0) const;
  // Returns the size in bytes of the axes from `first` on.
  std::uint64_t bytes(std::size_t first = 0) const;
};

// Accepts a buffer (bytearray, mmap, numpy), __array_interface__, __cuda_array_interface__ (cupy,
// torch) or DLPack (torch, jax). Raises UnsupportedError for memory of other devices than CUDA's,
// and TypeError for an object of another kind.
ObjectMemory memoryOf(const char* operation, py::handle object);
// Does the same as memoryOf(), and raises InvalidError for memory that is not contiguous.
ObjectMemory denseMemoryOf(const char* operation, py::handle object);
// Makes one block for each index of the first axis. Raises InvalidError if a row is not contiguous.
Run rowsOf(const char* operation, const ObjectMemory& memory);

}  // namespace viaduct::python
