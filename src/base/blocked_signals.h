// Keeps signals away from our threads, because the program's own threads handle them. Threads:
// affects the calling thread.
#pragma once

#include <signal.h>

namespace viaduct::base {

// While this object lives, its thread receives no signals. Threads that its thread starts meanwhile
// never receive any.
class BlockedSignals {
 public:
  BlockedSignals() {
    sigset_t all;
    ::sigfillset(&all);
    ::pthread_sigmask(SIG_SETMASK, &all, &before_);
  }
  ~BlockedSignals() { ::pthread_sigmask(SIG_SETMASK, &before_, nullptr); }
  BlockedSignals(const BlockedSignals&) = delete;
  BlockedSignals& operator=(const BlockedSignals&) = delete;

 private:
  sigset_t before_ = {};
};

}  // namespace viaduct::base
