// The encoding of a PinInfo in messages and Cards. Threads: pure.
#pragma once

#include <viaduct/memory.h>

#include "agent/session/limits.h"

namespace viaduct::agent {

void writePin(base::Writer& w, const PinInfo& pin);
PinInfo readPin(LimitedReader& in);

}  // namespace viaduct::agent
