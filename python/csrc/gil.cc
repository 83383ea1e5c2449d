#include "gil.h"

#include <unistd.h>

#include <thread>

namespace viaduct::python {

// An atexit function that runs later may wait for this thread. So the thread goes on after one
// second if the interpreter does not finalize.
void Exit::stay() {
  if (::syscall(SYS_gettid) == thread_) return;
  for (int i = 0; i < 100 && !isFinalizing(); ++i)
    std::this_thread::sleep_for(std::chrono::milliseconds(10));
  if (isFinalizing()) stayForGood();
}

void Exit::stayForGood() {
  for (;;) ::pause();
}

}  // namespace viaduct::python
