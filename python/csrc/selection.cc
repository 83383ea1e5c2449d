#include "selection.h"

#include <fmt/format.h>

#include <utility>

#include "errors.h"
#include "memory_of.h"
#include "rows.h"

namespace viaduct::python {
namespace {

std::shared_ptr<BlockList> oneBlock(std::uint64_t address, std::uint64_t bytes,
                                    py::object keeper = {}) {
  return blocksOf({.base = address, .bytes = bytes, .count = 1}, std::move(keeper));
}

Side ofPair(py::handle given) {
  const py::handle first = PyTuple_GET_ITEM(given.ptr(), 0);
  const py::handle second = PyTuple_GET_ITEM(given.ptr(), 1);
  if (!py::isinstance<BlockList>(first))
    return {.list = oneBlock(parseUnsigned(first, "address"), parseUnsigned(second, "bytes"))};
  return {.list = first.cast<std::shared_ptr<const BlockList>>(),
          .indices = second.is_none() ? Indices() : indicesOf(second)};
}

// Takes a whole array: as one block, or as one block for each row if gaps lie between the rows.
Side ofMemory(py::handle given) {
  const ObjectMemory memory = memoryOf("plan", given);
  if (memory.isDense()) return {.list = oneBlock(memory.address, memory.bytes(), memory.keeper)};
  return {.list = blocksOf(rowsOf("plan", memory), memory.keeper)};
}

}  // namespace

bool isPair(py::handle given) {
  return PyTuple_Check(given.ptr()) != 0 && PyTuple_GET_SIZE(given.ptr()) == 2;
}

Indices indicesOf(py::handle given) {
  Indices indices(parseIndices(given));
  // The library takes an empty list of indices for all blocks, so refuse an empty list here.
  if (indices.empty()) raiseMisuse("select blocks", "0 indices select no block");
  return indices;
}

py::tuple tupleOf(const Indices& indices) {
  py::tuple numbers(indices.size());
  for (std::size_t i = 0; i < indices.size(); ++i) numbers[i] = indices[i];
  return numbers;
}

Side localSideOf(py::handle given, const AgentState& agent) {
  if (py::isinstance<PinInfo>(given))
    raiseMisuse("plan", "the local side lies at a peer", "pass memory of this process as `local`");
  if (py::isinstance<PinState>(given) && given.cast<const PinState&>().agent().get() != &agent)
    raiseMisuse("plan", "the local pin belongs to another agent",
                "pin the memory with this agent too");
  return remoteSideOf(given);
}

Side remoteSideOf(py::handle given) {
  if (py::isinstance<BlockList>(given))
    return {.list = given.cast<std::shared_ptr<const BlockList>>()};
  if (py::isinstance<SelectedBlocks>(given)) {
    const auto& selected = given.cast<const SelectedBlocks&>();
    return {.list = selected.list, .indices = selected.indices};
  }
  if (py::isinstance<PinState>(given)) {
    const auto& pin = given.cast<const PinState&>();
    pin.need("plan");
    return {.list = oneBlock(pin.info().address, pin.info().bytes,
                             py::reinterpret_borrow<py::object>(given))};
  }
  if (py::isinstance<PinInfo>(given)) {
    const auto& pin = given.cast<const PinInfo&>();
    return {.list = oneBlock(pin.address, pin.bytes)};
  }
  if (isPair(given)) return ofPair(given);
  return ofMemory(given);
}

std::shared_ptr<BlockList> blocksWithin(const PinInfo& pin, const Cut& cut, py::object keeper) {
  constexpr auto kOperation = "blocks";
  const std::uint64_t stride = cut.stride == 0 ? cut.bytes : cut.stride;
  if (cut.bytes == 0 || stride < cut.bytes)
    raiseMisuse(kOperation,
                fmt::format("blocks of {} bytes that begin {} bytes apart are empty or overlap",
                            cut.bytes, stride));
  if (cut.offset > pin.bytes || cut.bytes > pin.bytes - cut.offset)
    raiseMisuse(kOperation,
                fmt::format("a block of {} bytes at offset {} does not fit into a pin of {} bytes",
                            cut.bytes, cut.offset, pin.bytes));
  const std::uint64_t room = pin.bytes - cut.offset;
  const std::uint64_t fit = (room - cut.bytes) / stride + 1;
  const std::uint64_t rest = room - (fit - 1) * stride - cut.bytes;
  const std::uint64_t gap = stride - cut.bytes;
  if (!cut.count && rest != 0 && rest != gap)
    raiseMisuse(
        kOperation,
        fmt::format("{} bytes are left over after {} blocks of {} bytes", rest, fit, cut.bytes),
        fmt::format("pass count={} to leave them out", fit));
  if (cut.count && (*cut.count == 0 || *cut.count > fit))
    raiseMisuse(kOperation, fmt::format("count={}, but only {} blocks fit into {} bytes",
                                        *cut.count, fit, room));
  return blocksOf({.base = pin.address + cut.offset,
                   .stride = stride,
                   .bytes = cut.bytes,
                   .count = cut.count.value_or(fit)},
                  std::move(keeper));
}

std::shared_ptr<BlockList> blocksOf(const Run& run, py::object keeper) {
  return std::make_shared<BlockList>(valueOf(Blocks::strided(run)), std::move(keeper));
}

std::vector<std::shared_ptr<const PinState>> BlockList::pinsOf(const AgentState& agent) const {
  if (pins_agent_ != &agent || pins_version_ != agent.pinsVersion()) findPins(agent);
  std::vector<std::shared_ptr<const PinState>> held;
  held.reserve(pins_.size());
  for (const auto& pin : pins_)
    if (auto alive = pin.lock()) held.push_back(std::move(alive));
  return held;
}

// Collects every pin that a run touches, because a run may span several adjacent pins.
void BlockList::findPins(const AgentState& agent) const {
  pins_.clear();
  std::shared_ptr<const PinState> last;
  const auto inLast = [&](std::uint64_t address) {
    return last && address - last->info().address < last->info().bytes;
  };
  for (std::size_t number = 0; number < blocks_.runs(); ++number) {
    const Run run = blocks_.run(number);
    const std::uint64_t stride = run.stride == 0 ? run.bytes : run.stride;
    const std::uint64_t end = run.base + (run.count - 1) * stride + run.bytes;
    for (std::uint64_t at = run.base; at < end;) {
      if (!inLast(at)) {
        last = agent.pinAt(at);
        if (!last) break;  // plan() refuses the address with a better error
        pins_.push_back(last);
      }
      at = last->info().address + last->info().bytes;
    }
  }
  pins_agent_ = &agent;
  pins_version_ = agent.pinsVersion();
}

}  // namespace viaduct::python
