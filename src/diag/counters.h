#pragma once
#include <string>
#include <vector>

#include "diag/tree.h"
namespace viaduct::diag {
inline std::vector<std::string> counterPaths(const Tree&) { return {}; }
}  // namespace viaduct::diag
