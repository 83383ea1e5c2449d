// Converts the blocks and selections of blocks that Python callers pass. Threads: call with the
// GIL.
#pragma once

#include <pybind11/pybind11.h>
#include <viaduct/blocks.h>
#include <viaduct/memory.h>

#include <cstdint>
#include <memory>
#include <optional>
#include <utility>
#include <vector>

#include "agent_state.h"

namespace viaduct::python {

// The state behind the Python class Blocks.
class BlockList {
 public:
  BlockList(Blocks blocks, py::object keeper)
      : blocks_(std::move(blocks)), keeper_(std::move(keeper)) {}

  const Blocks& blocks() const { return blocks_; }
  const py::object& keeper() const { return keeper_; }
  // Returns the agent's pins that contain the blocks. Caches the result until the agent's pins
  // change.
  std::vector<std::shared_ptr<const PinState>> pinsOf(const AgentState& agent) const;

 private:
  void findPins(const AgentState& agent) const;

  Blocks blocks_;
  py::object keeper_;  // keeps the memory of the blocks alive
  mutable const AgentState* pins_agent_ = nullptr;
  mutable std::uint64_t pins_version_ = 0;
  mutable std::vector<std::weak_ptr<const PinState>> pins_;
};

// The state behind the Python class Selection, the result of blocks[indices].
struct SelectedBlocks {
  std::shared_ptr<const BlockList> list;
  Indices indices;
};

// Whether the object is a tuple of two items, such as (address, bytes).
bool isPair(py::handle given);
// Parses block numbers. Raises InvalidError if the caller passes none.
Indices indicesOf(py::handle given);
py::tuple tupleOf(const Indices& indices);

// One side of a plan. docs/python.md lists the Python types that make a side.
struct Side {
  std::shared_ptr<const BlockList> list;
  Indices indices = {};

  // Returns the blocks with the indices, which are moved out of this object.
  Selection take() { return {.blocks = list->blocks(), .indices = std::move(indices)}; }
};
// The local side refuses a RemotePin and a pin of another agent.
Side localSideOf(py::handle given, const AgentState& agent);
Side remoteSideOf(py::handle given);

// Describes equal blocks of a pin, which is local or belongs to a peer.
struct Cut {
  std::uint64_t bytes = 0, stride = 0, offset = 0;
  std::optional<std::uint64_t> count;
};
std::shared_ptr<BlockList> blocksWithin(const PinInfo& pin, const Cut& cut, py::object keeper);
// Makes a list of one run, whose memory the keeper keeps alive.
std::shared_ptr<BlockList> blocksOf(const Run& run, py::object keeper = {});

}  // namespace viaduct::python
