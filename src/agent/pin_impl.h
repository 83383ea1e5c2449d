// The implementation behind Pin. Threads: as Pin says.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>

#include "agent/agent_impl.h"
#include "base/shared_memory.h"

namespace viaduct::agent {

class PinImpl {
 public:
  PinImpl(std::shared_ptr<AgentImpl> agent, PinInfo info, base::SharedMemory memory,
          std::shared_ptr<const void> device_memory = {})
      : agent_(std::move(agent)),
        info_(std::move(info)),
        memory_(std::move(memory)),
        device_memory_(std::move(device_memory)) {}

  // Memory of allocate() that a peer or a device may still use stays for ever.
  ~PinImpl();
  PinImpl(const PinImpl&) = delete;
  PinImpl& operator=(const PinImpl&) = delete;

  const PinInfo& info() const { return info_; }
  const base::SharedMemory& memory() const { return memory_; }
  // Unpins at the first call. Later calls return the same outcome. A callback's call during the
  // first gets kBusy.
  Status release();
  bool released() const { return outcome_.has_value(); }

 private:
  const std::shared_ptr<AgentImpl> agent_;
  const PinInfo info_;
  base::SharedMemory memory_;                        // of allocate(); else empty
  const std::shared_ptr<const void> device_memory_;  // kept for memory of a GPU; else null
  std::optional<Status> outcome_;
};

}  // namespace viaduct::agent
