// The CPU time of this process and of its host, from a moment on. Threads: one at a time.
#pragma once

#include <viaduct/deadline.h>

#include <chrono>
#include <optional>

#include "host/processors.h"
#include "measure/proof/share.h"

namespace viaduct::measure {

class CpuWatch {
 public:
  CpuUse used() const {
    CpuUse out{.used = host::ownProcessorSeconds() - used_,
               .over = std::chrono::duration<double>(Clock::now() - begun_).count()};
    if (const auto machine = host::processorUse(); machine && machine_) {
      out.machine = machine->seconds - machine_->seconds;
      out.idle = machine->idle - machine_->idle;
      out.processors = machine->count;
    }
    return out;
  }

 private:
  double used_ = host::ownProcessorSeconds();
  std::optional<host::ProcessorUse> machine_ = host::processorUse();
  Clock::time_point begun_ = Clock::now();
};

}  // namespace viaduct::measure
