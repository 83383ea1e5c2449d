// Declares the state behind the Python class MarkStream. Threads: call with the GIL.
#pragma once

#include <pybind11/pybind11.h>
#include <viaduct/mark_stream.h>

#include <memory>
#include <optional>
#include <utility>

#include "agent_state.h"

namespace viaduct::python {

struct MarksState {
  MarksState(std::shared_ptr<AgentState> of, MarkStream opened)
      : agent(std::move(of)), stream(std::move(opened)) {}
  MarksState(const MarksState&) = delete;
  MarksState& operator=(const MarksState&) = delete;
  ~MarksState();

  const std::shared_ptr<AgentState> agent;
  std::optional<MarkStream> stream;  // empty only in the destructor, which releases the GIL
};

// Parses (stream, number) for a post, where the stream is a MarkStream or its number. None: no
// mark.
std::optional<Mark> postedMarkOf(const py::object& given);

}  // namespace viaduct::python
