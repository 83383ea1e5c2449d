// Declares the state behind the Python class Transfer. Threads: call with the GIL; a call releases
// the GIL while it blocks or copies.
#pragma once

#include <memory>
#include <vector>

#include "agent_state.h"
#include "nixl/fenced_transfer.h"
#include "selection.h"

namespace viaduct::python {

// Parses "write" or "read".
OpKind kindOf(const py::object& op);
Priority priorityOf(const std::string& name);

// The arguments of Transfer.post(). None: nothing was passed.
struct PostArguments {
  py::object note = py::none(), timeout = py::none(), digests = py::none(), mark = py::none();
};

// Keeps every object of the copy alive: the agent, the local pins, and the arrays behind the
// blocks.
class PlannedTransfer {
 public:
  PlannedTransfer(std::shared_ptr<AgentState> agent, OpKind kind, Side local, Side remote,
                  Transfer planned);
  ~PlannedTransfer();
  PlannedTransfer(const PlannedTransfer&) = delete;
  PlannedTransfer& operator=(const PlannedTransfer&) = delete;

  void post(const PostArguments& given);
  // Makes progress once. Returns true if the post is done, and raises its error if it failed.
  bool poll();
  void wait(const py::object& timeout);
  void cancel();
  void close();

  const std::shared_ptr<AgentState>& agent() const { return agent_; }
  OpKind kind() const { return kind_; }
  // Reads the state of the last post, also after close(). The call does not use the agent.
  TransferState state() const { return transfer_.state(); }
  const Transfer& transfer() const { return transfer_; }

 private:
  void need(const char* operation) const {
    agent_->need(operation);
    if (closed_) [[unlikely]]
      refuseClosed(operation);
  }
  // Accepts a closed agent too: close() ended the agent's transfers, and each transfer still knows
  // its end.
  void needHandle(const char* operation) const {
    if (agent_->isForked()) agent_->need(operation);
    if (closed_) refuseClosed(operation);
  }
  [[noreturn]] static void refuseClosed(const char* operation);

  const std::shared_ptr<AgentState> agent_;
  const OpKind kind_;
  std::shared_ptr<const BlockList> local_, remote_;
  std::vector<std::shared_ptr<const PinState>> pins_;
  bool closed_ = false;
  nixl::FencedTransfer transfer_;
};

}  // namespace viaduct::python
