// Declares the C++ state behind the Python classes Agent, Pin and Peer. Threads: call with the GIL;
// the library's own threads never take the GIL.
#pragma once

#include <pybind11/pybind11.h>
#include <viaduct/agent.h>

#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "gil.h"

namespace viaduct::python {

namespace py = pybind11;

class PinState;

// The state behind the Python class Agent. Pins, peers and transfers hold a reference, so the agent
// is destroyed after them.
class AgentState : public std::enable_shared_from_this<AgentState> {
 public:
  explicit AgentState(Agent opened);
  ~AgentState();
  AgentState(const AgentState&) = delete;
  AgentState& operator=(const AgentState&) = delete;

  // Raises InvalidError if the agent is closed, or if the parent process opened it before fork().
  void need(const char* operation) const {
    if (closed_ || isForked()) [[unlikely]]
      refuse(operation);
  }
  bool isClosed() const { return closed_; }
  bool isForked() const;
  void close();
  // Closes every open agent. The interpreter calls this function at exit.
  static void closeAll();

  // These calls index the pins by address, so that a transfer can find its pins and hold them.
  std::shared_ptr<PinState> addPin(Pin pin, py::object keeper);
  void removePin(const PinState& pin);
  std::shared_ptr<const PinState> pinAt(std::uint64_t address) const;
  // Changes when a pin is added or removed, so that callers can cache the results of pinAt().
  std::uint64_t pinsVersion() const { return pins_version_; }
  // Keeps `memory` alive until Peer::settled(): a suspended process may resume and finish a write
  // that it had begun.
  void keepUntilSettled(const std::string& peer, py::object memory);

  Agent agent;

 private:
  [[noreturn]] void refuse(const char* operation) const;
  void dropSettled();

  bool closed_ = false;
  const std::uint64_t fork_generation_;
  std::multimap<std::uint64_t, const PinState*> pins_;
  std::uint64_t pins_version_ = 0;
  std::vector<std::pair<Peer, py::object>> unsettled_;
};

// Calls a member function of the agent without the GIL.
template <class Member, class... Arguments>
auto ask(AgentState& state, const char* operation, Member member, const Arguments&... arguments) {
  state.need(operation);
  return unlocked([&] { return std::invoke(member, state.agent, arguments...); });
}

// The state behind the Python class Pin. Exported buffer views keep the memory of the pin valid.
class PinState : public std::enable_shared_from_this<PinState> {
 public:
  PinState(std::shared_ptr<AgentState> agent, Pin pin, py::object keeper)
      : agent_(std::move(agent)),
        info_(pin.info()),
        read_only_(pin.segment().access == MemoryAccess::kReadOnly),
        keeper_(std::move(keeper)),
        pin_(std::move(pin)) {}
  ~PinState();
  PinState(const PinState&) = delete;
  PinState& operator=(const PinState&) = delete;

  const PinInfo& info() const { return info_; }
  bool isReadOnly() const { return read_only_; }
  const std::shared_ptr<AgentState>& agent() const { return agent_; }
  bool isReleased() const { return released_; }
  // Raises InvalidError if the pin was released.
  void need(const char* operation) const;
  void release();
  void addView() { ++views_; }
  void dropView();

 private:
  void freeIfUnused();

  const std::shared_ptr<AgentState> agent_;
  const PinInfo info_;
  const bool read_only_;
  py::object keeper_;  // the Python object that owns the memory; empty after Agent.allocate()
  bool released_ = false;
  bool withdrawn_ = false;  // release() has returned once: peers cannot reach the memory any more
  std::size_t views_ = 0;
  std::mutex one_at_a_time_;  // a thread releases the GIL before it locks this mutex
  std::optional<Pin> pin_;    // empty after the memory was given back
};

// The state behind the Python class Peer.
struct KnownPeer {
  std::shared_ptr<AgentState> agent;
  Peer peer;
};

}  // namespace viaduct::python
