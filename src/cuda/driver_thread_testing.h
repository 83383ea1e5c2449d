// For tests of what ends on the driver thread.
#pragma once

#include <future>
#include <memory>

#include "cuda/driver_thread.h"

namespace viaduct::cuda::testing {

// Waits until the driver thread has done all earlier work.
inline void waitForDriverThread() {
  const auto over = std::make_shared<std::promise<void>>();
  onDriverThread([over] { over->set_value(); });
  over->get_future().wait();
}

}  // namespace viaduct::cuda::testing
