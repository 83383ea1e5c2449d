// The facts of a node that guides ask their readers to write down. Threads: one at a time.
#pragma once

#include <string>

#include "diag/node.h"

namespace viaduct::diag {

// A Markdown table. Unknown facts read "unknown".
std::string nodeCard(const Node& node);

}  // namespace viaduct::diag
