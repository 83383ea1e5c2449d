#include "base/transitions.h"

#include <cassert>

#include "base/log.h"

namespace viaduct::base {

void reportForbiddenStep(std::string_view name, unsigned state, unsigned event) {
  log(LogLevel::kError,
      "a bug of this library: {} in state {} has no step for event {}, and keeps the state; please "
      "report it with the lines before",
      name, state, event);
  assert(false && "no step");
}

}  // namespace viaduct::base
