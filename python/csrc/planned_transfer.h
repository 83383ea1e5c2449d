// The class Transfer. Threads: with the GIL, but for what the library does meanwhile.
#pragma once

#include <viaduct/transfer.h>

#include <memory>
#include <mutex>
#include <vector>

#include "agent_state.h"
#include "selection.h"

namespace viaduct::python {

// Keeps all that the copy touches alive: the agent, the pins here, and the arrays behind the
// blocks.
class PlannedTransfer {
 public:
  PlannedTransfer(std::shared_ptr<AgentState> agent, OpKind kind, Side local, Side remote,
                  Transfer planned);
  ~PlannedTransfer();
  PlannedTransfer(const PlannedTransfer&) = delete;
  PlannedTransfer& operator=(const PlannedTransfer&) = delete;

  void post(const py::object& note, const py::object& timeout);
  // True at the end, also if it ended as a failure; raises nothing.
  bool advance();
  // Raises why the last post failed.
  void raiseFailure();
  void wait(const py::object& timeout);
  void cancel();
  void close();

  const std::shared_ptr<AgentState>& agent() const { return agent_; }
  OpKind kind() const { return kind_; }
  // Looks at no more than the transfer itself. After close(), how the last post ended.
  TransferState state() const { return transfer_.state(); }
  const Transfer& transfer() const { return transfer_; }

 private:
  void need(const char* operation) const {
    agent_->need(operation);
    if (closed_) [[unlikely]]
      refuseClosed(operation);
  }
  // Also of an agent that is closed: it ended its transfers, and they say how.
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
  std::mutex posting_;  // never taken with the GIL
  bool over_ = false;   // guarded by it: no post may begin any more
  Transfer transfer_;
};

}  // namespace viaduct::python
