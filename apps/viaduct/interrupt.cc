#include "viaduct/interrupt.h"

#include <signal.h>

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

}  // namespace viaduct::app
