#include "viaduct/interrupt.h"

#include <signal.h>
#include <time.h>

namespace viaduct::app {
namespace {

base::StopFlag interrupted{false};

}  // namespace

const base::StopFlag& stopOnSignals() {
  struct sigaction act{};
  act.sa_handler = [](int) { interrupted.store(true); };
  act.sa_flags = static_cast<int>(SA_RESETHAND);
  ::sigaction(SIGINT, &act, nullptr);
  ::sigaction(SIGTERM, &act, nullptr);
  return interrupted;
}

EndingSignals::EndingSignals() {
  ::sigemptyset(&signals_);
  ::sigaddset(&signals_, SIGINT);
  ::sigaddset(&signals_, SIGTERM);
  ::sigprocmask(SIG_BLOCK, &signals_, nullptr);
}

bool EndingSignals::comesWithin(std::chrono::nanoseconds time) const {
  const auto seconds = std::chrono::duration_cast<std::chrono::seconds>(time);
  const timespec wait{.tv_sec = seconds.count(), .tv_nsec = (time - seconds).count()};
  return ::sigtimedwait(&signals_, nullptr, &wait) > 0;
}

}  // namespace viaduct::app
