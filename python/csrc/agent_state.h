// What one Python object of the package owns in C++. Threads: with the GIL, which the library's own
// threads never take.
#pragma once

#include <pybind11/pybind11.h>
#include <viaduct/agent.h>

#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <utility>
#include <vector>

namespace viaduct::python {

namespace py = pybind11;

class PinState;

// The class Agent. Pins, peers and transfers hold it, so it goes last.
class AgentState : public std::enable_shared_from_this<AgentState> {
 public:
  explicit AgentState(Agent opened);
  ~AgentState();
  AgentState(const AgentState&) = delete;
  AgentState& operator=(const AgentState&) = delete;

  // InvalidError after close(), and in a child of fork().
  void need(const char* operation) const {
    if (closed_ || isForked()) [[unlikely]]
      refuse(operation);
  }
  bool isClosed() const { return closed_; }
  bool isForked() const;
  void close();
  // Of every agent that is open. For the exit of the interpreter.
  static void closeAll();

  // Pins by address, so that transfers can hold those that they use.
  std::shared_ptr<PinState> addPin(Pin pin, py::object keeper);
  void removePin(const PinState& pin);
  std::shared_ptr<const PinState> pinAt(std::uint64_t address) const;
  // Changes with the pins.
  std::uint64_t pinsVersion() const { return pins_version_; }
  // A stopped peer may still write there: kept until it is settled.
  void keepUntilSettled(const std::string& peer, py::object memory);

  Agent agent;
  py::object readers = py::none();  // of viaduct/_asyncio.py

 private:
  [[noreturn]] void refuse(const char* operation) const;
  void dropSettled();

  bool closed_ = false;
  const std::uint64_t fork_generation_;
  std::multimap<std::uint64_t, const PinState*> pins_;
  std::uint64_t pins_version_ = 0;
  std::vector<std::pair<Peer, py::object>> unsettled_;
};

// The class Pin. Views of its memory are exported, and keep it.
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
  // InvalidError after release().
  void need(const char* operation) const;
  void release();
  void addView() { ++views_; }
  void dropView();

 private:
  void freeIfUnused();

  const std::shared_ptr<AgentState> agent_;
  const PinInfo info_;
  const bool read_only_;
  py::object keeper_;  // of memory that is not ours
  bool released_ = false;
  bool withdrawn_ = false;  // release() has returned once: nobody reaches the memory any more
  std::size_t views_ = 0;
  std::mutex one_at_a_time_;  // never taken with the GIL
  std::optional<Pin> pin_;    // none: its memory is given back
};

// The class Peer.
struct KnownPeer {
  std::shared_ptr<AgentState> agent;
  Peer peer;
};

}  // namespace viaduct::python
