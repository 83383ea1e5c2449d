// A request to stop, from a signal handler or another thread. Threads: any.
#pragma once

#include <atomic>

namespace viaduct::base {

// Set once; then waiting threads give up soon.
using StopFlag = std::atomic<bool>;

}  // namespace viaduct::base
