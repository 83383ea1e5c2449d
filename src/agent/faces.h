// The private halves of the public handles. Threads: as their public faces say.
#pragma once

#include <cstdint>
#include <memory>

#include "agent/core.h"
#include "base/shared_memory.h"

namespace viaduct::agent {

class PinCore {
 public:
  PinCore(std::shared_ptr<AgentCore> agent, PinInfo info, base::SharedMemory memory)
      : agent_(std::move(agent)), info_(std::move(info)), memory_(std::move(memory)) {}

  const PinInfo& info() const { return info_; }
  const base::SharedMemory& memory() const { return memory_; }
  Status release();

 private:
  const std::shared_ptr<AgentCore> agent_;
  const PinInfo info_;
  base::SharedMemory memory_;  // of allocate(); else empty
  bool released_ = false;
};

}  // namespace viaduct::agent
