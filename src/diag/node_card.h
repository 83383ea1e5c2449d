// The facts of a node that guides ask their readers to write down. Threads: one at a time.
#pragma once

#include <string>
#include <vector>

#include "diag/diagnosis.h"
#include "diag/node.h"

namespace viaduct::diag {

// Unknown values read "unknown".
std::vector<NodeFact> nodeFacts(const Node& node);
// The facts as a Markdown table.
std::string nodeCard(const Node& node);

}  // namespace viaduct::diag
