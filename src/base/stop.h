// A wish to stop, from a signal handler or another thread. Threads: any.
#pragma once

#include <atomic>

namespace viaduct::base {

// Set once; whoever waits gives up soon after.
using StopFlag = std::atomic<bool>;

}  // namespace viaduct::base
