// The CPU time that this process and its host have used since this object was made. Threads: one at
// a time.
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
    CpuUse out{.used = host::ownProcessorSeconds() - used_};
    if (const auto machine = host::processorUse(); machine && machine_) {
      out.machine = machine->seconds - machine_->seconds;
      out.idle = machine->idle - machine_->idle;
      out.processors = machine->count;
    }
    out.over = std::chrono::duration<double>(Clock::now() - begun_).count();
    return out;
  }

 private:
  // The clock is read first here, and last in used(). So the clock's interval contains the
  // kernel's, even if this thread has to wait between the readings.
  Clock::time_point begun_ = Clock::now();
  double used_ = host::ownProcessorSeconds();
  std::optional<host::ProcessorUse> machine_ = host::processorUse();
};

}  // namespace viaduct::measure
