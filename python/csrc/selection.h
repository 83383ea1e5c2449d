// Blocks and selections of them, as Python passes them. Threads: with the GIL.
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

// The class Blocks.
class BlockList {
 public:
  BlockList(Blocks blocks, py::object keeper)
      : blocks_(std::move(blocks)), keeper_(std::move(keeper)) {}

  const Blocks& blocks() const { return blocks_; }
  const py::object& keeper() const { return keeper_; }
  // The pins of the agent that the blocks lie in. Remembered while the agent's pins are the same.
  std::vector<std::shared_ptr<const PinState>> pinsOf(const AgentState& agent) const;

 private:
  void findPins(const AgentState& agent) const;

  Blocks blocks_;
  py::object keeper_;  // of the memory that the blocks were made from
  mutable const AgentState* pins_agent_ = nullptr;
  mutable std::uint64_t pins_version_ = 0;
  mutable std::vector<std::weak_ptr<const PinState>> pins_;
};

// The class Selection, which is what blocks[indices] gives.
struct SelectedBlocks {
  std::shared_ptr<const BlockList> list;
  Indices indices;
};

// Numbers of blocks, of which there is at least one.
Indices indicesOf(py::handle given);

// One side of a plan, made of whatever docs/python.md allows.
struct Side {
  std::shared_ptr<const BlockList> list;
  Indices indices = {};
};
// The local side, whose pins are the agent's.
Side localSideOf(py::handle given, const AgentState& agent);
Side remoteSideOf(py::handle given);

// Equal blocks of a pin, here or at a peer.
struct Cut {
  std::uint64_t bytes = 0, stride = 0, offset = 0;
  std::optional<std::uint64_t> count;
};
std::shared_ptr<BlockList> blocksWithin(const PinInfo& pin, const Cut& cut, py::object keeper);

inline constexpr auto kBlocksOfPin = R"(blocks($self, /, bytes, *, stride=0, offset=0, count=None)
--

The memory as blocks of `bytes` each, from `offset` on.

They touch, or begin `stride` bytes apart. Without `count`, as many as there are; the memory then has
to end with a whole block.)";

}  // namespace viaduct::python
