// The facts of a node that guides ask people to write down. Threads: one at a time.
#pragma once

#include <string>

#include "diag/node.h"

namespace viaduct::diag {

// A Markdown table. What cannot be found out reads "unknown".
std::string nodeCard(const Node& node);

}  // namespace viaduct::diag
