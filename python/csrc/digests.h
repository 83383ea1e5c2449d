// Converts digests of blocks to rows of 16 bytes for Python, and back. Threads: call with the GIL.
#pragma once

#include <pybind11/pybind11.h>
#include <viaduct/digest.h>

#include <array>
#include <cstdint>
#include <vector>

namespace viaduct::python {

namespace py = pybind11;

// The bytes of a digest in the order of Digest::text(), so that their hexadecimal form is this
// text.
using DigestRow = std::array<std::uint8_t, sizeof(Digest)>;

// The state behind the Python class Digests.
struct DigestRows {
  std::vector<DigestRow> rows;
  friend bool operator==(const DigestRows&, const DigestRows&) = default;
};

DigestRows rowsOf(const std::vector<Digest>& digests);
// Parses an object Digests, an array of bytes of the shape (n, 16), or a list of 16 bytes each.
std::vector<Digest> digestsOf(const char* operation, const py::object& given);

}  // namespace viaduct::python
