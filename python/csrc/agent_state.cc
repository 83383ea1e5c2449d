#include "agent_state.h"

#include <fmt/format.h>

#include <algorithm>
#include <iterator>
#include <optional>

#include "base/process_id.h"
#include "errors.h"
#include "gil.h"

namespace viaduct::python {
namespace {

// The list is never destroyed, because agents may outlive the interpreter.
std::vector<AgentState*>& openAgents() {
  static auto& agents = *new std::vector<AgentState*>();
  return agents;
}

}  // namespace

AgentState::AgentState(Agent opened)
    : agent(std::move(opened)), fork_generation_(base::forkGeneration()) {
  openAgents().push_back(this);
}

AgentState::~AgentState() {
  std::erase(openAgents(), this);
  if (!closed_) unlockedFromDestructor([this] { agent.close(); });
  dropSettled();
  // Leaks the remaining objects on purpose: a stopped peer may still write to their memory.
  for (auto& [peer, memory] : unsettled_) memory.release();
}

bool AgentState::isForked() const { return fork_generation_ != base::forkGeneration(); }

void AgentState::refuse(const char* operation) const {
  if (isForked())
    raiseMisuse(operation, "the agent was opened before fork(), by the parent process",
                "open an agent in the child, or start children with the method \"spawn\"");
  raiseMisuse(operation, "the agent is closed", "open another agent");
}

void AgentState::close() {
  closed_ = true;
  const Unlocked unlocked;
  agent.close();  // a second caller waits for the first
}

void AgentState::closeAll() {
  Exit::begin();
  // close() releases the GIL, so another thread may change the list during the loop.
  while (!openAgents().empty()) {
    AgentState& last = *openAgents().back();
    openAgents().pop_back();
    const auto held = last.weak_from_this().lock();
    if (held) held->close();
  }
}

std::shared_ptr<PinState> AgentState::addPin(Pin pin, py::object keeper) {
  dropSettled();
  auto state = std::make_shared<PinState>(shared_from_this(), std::move(pin), std::move(keeper));
  pins_.emplace(state->info().address, state.get());
  ++pins_version_;
  return state;
}

void AgentState::removePin(const PinState& pin) {
  const auto [first, last] = pins_.equal_range(pin.info().address);
  const auto found = std::find_if(first, last, [&](const auto& row) { return row.second == &pin; });
  if (found == last) return;
  pins_.erase(found);
  ++pins_version_;
}

// Pins may lie inside other pins. So the pin with the nearest lower start may end before the
// address, while a pin with a lower start contains it.
std::shared_ptr<const PinState> AgentState::pinAt(std::uint64_t address) const {
  for (auto row = pins_.upper_bound(address); row != pins_.begin();) {
    const PinInfo& info = (--row)->second->info();
    if (address - info.address < info.bytes) return row->second->weak_from_this().lock();
  }
  return nullptr;
}

void AgentState::keepUntilSettled(const std::string& peer, py::object memory) {
  // Without a name, a device of this agent may still write there.
  if (auto known = peer.empty() ? agent.self() : agent.peer(peer))
    unsettled_.emplace_back(*std::move(known), std::move(memory));
  else
    memory.release();  // leaked: a forgotten peer cannot tell whether it still writes there
}

void AgentState::dropSettled() {
  const auto settled = std::partition(unsettled_.begin(), unsettled_.end(),
                                      [](const auto& left) { return !left.first.settled(); });
  // A finalizer of the memory may call this function again, so take the rows out of the list first.
  const std::vector dropped(std::make_move_iterator(settled),
                            std::make_move_iterator(unsettled_.end()));
  unsettled_.erase(settled, unsettled_.end());
}

PinState::~PinState() {
  agent_->removePin(*this);
  std::optional<Error> failed;
  unlockedFromDestructor([&] {
    if (released_ || !pin_) return;
    if (auto released = pin_->release(); !released) failed = std::move(released).error();
  });
  if (!failed) return;
  if (failed->code == Code::kPeerLost && keeper_)
    agent_->keepUntilSettled(failed->peer, std::move(keeper_));
  if (isFinalizing()) return;  // nothing can be imported any more
  setError(*failed);
  PyErr_WriteUnraisable(nullptr);
}

void PinState::need(const char* operation) const {
  if (released_)
    raiseMisuse(
        operation,
        fmt::format("the pin of {} bytes at {:#x} was released", info_.bytes, info_.address),
        "pin the memory again");
}

void PinState::release() {
  if (!std::exchange(released_, true)) agent_->removePin(*this);
  const Status outcome = [&]() -> Status {
    const Unlocked unlocked;
    const std::lock_guard held(one_at_a_time_);
    if (!pin_) return Ok{};
    return pin_->release();
  }();
  if (!outcome && outcome.error().code == Code::kPeerLost && keeper_)
    agent_->keepUntilSettled(outcome.error().peer, keeper_);
  withdrawn_ = true;
  freeIfUnused();
  check(outcome);
}

void PinState::dropView() {
  --views_;
  freeIfUnused();
}

void PinState::freeIfUnused() {
  if (!withdrawn_ || views_ != 0) return;
  keeper_ = py::object();
  unlockedFromDestructor([this] {
    const std::lock_guard held(one_at_a_time_);
    pin_.reset();
  });
}

}  // namespace viaduct::python
