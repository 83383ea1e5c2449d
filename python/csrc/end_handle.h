// Holds one end of a lease, stream or parcel for a Python object. Threads: call with the GIL.
#pragma once

#include <memory>
#include <optional>
#include <utility>
#include <vector>

#include "agent_state.h"
#include "gil.h"

namespace viaduct::python {

// The destructor of an end may wait for the other process, so it runs without the GIL.
template <class End>
struct EndHandle {
  EndHandle(std::shared_ptr<AgentState> of, End made,
            std::vector<std::shared_ptr<const PinState>> used = {})
      : agent(std::move(of)), pins(std::move(used)), end(std::move(made)) {}
  EndHandle(const EndHandle&) = delete;
  EndHandle& operator=(const EndHandle&) = delete;
  ~EndHandle() {
    // Leaks the end in a child of fork(): the end belongs to the parent.
    if (agent->isForked()) static_cast<void>(new End(*std::move(end)));
    unlockedFromDestructor([this] { end.reset(); });
  }

  const std::shared_ptr<AgentState> agent;
  std::vector<std::shared_ptr<const PinState>> pins;  // kept alive, with their memory
  std::optional<End> end;                             // empty only in the destructor
};

// Adds the property `_agent`, which viaduct/_asyncio.py reads, to a class of handles.
template <class End>
py::class_<EndHandle<End>> withAgent(py::class_<EndHandle<End>> ends) {
  ends.def_property_readonly("_agent", [](const EndHandle<End>& end) { return end.agent; });
  return ends;
}

}  // namespace viaduct::python
