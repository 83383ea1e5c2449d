// Signals are the program's: its own threads handle them. Threads: blocks those of its own thread.
#pragma once

#include <signal.h>

namespace viaduct::base {

// While it lives, this thread takes no signals, and neither do the threads that it starts, ever.
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
