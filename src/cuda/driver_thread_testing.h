// For tests of the driver's threads.
#pragma once

#include <future>
#include <memory>

#include "cuda/driver_thread.h"

namespace viaduct::cuda::testing {

// Wait until the thread has done all earlier work.
inline void waitForRegistrar() {
  const auto over = std::make_shared<std::promise<void>>();
  onRegistrar([over] { over->set_value(); });
  over->get_future().wait();
}
inline void waitForEnds() {
  const auto over = std::make_shared<std::promise<void>>();
  endLater([over] { over->set_value(); });
  over->get_future().wait();
}

}  // namespace viaduct::cuda::testing
