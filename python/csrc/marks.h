// Declares the state behind the Python class MarkStream. Threads: call with the GIL.
#pragma once

#include <pybind11/pybind11.h>
#include <viaduct/mark_stream.h>

#include <optional>

#include "end_handle.h"

namespace viaduct::python {

using MarksState = EndHandle<MarkStream>;

// Parses (stream, number) for a post, where the stream is a MarkStream or its number. None: no
// mark.
std::optional<Mark> postedMarkOf(const py::object& given);

}  // namespace viaduct::python
