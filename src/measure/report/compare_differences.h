// Finds the differences between two sides of a comparison, apart from their figures. Threads: pure
// functions.
#pragma once

#include <viaduct/result.h>

#include <string>
#include <vector>

#include "measure/result/report.h"

namespace viaduct::measure {

struct CompareOptions;

// Returns the differences as text. Fails if machines or settings differ although the options
// do not allow a difference.
Result<std::vector<std::string>> differencesOf(const std::vector<Report>& a,
                                               const std::vector<Report>& b,
                                               const CompareOptions& options);

}  // namespace viaduct::measure
