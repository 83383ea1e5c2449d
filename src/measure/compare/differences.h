// In what two sides of a comparison differ besides their figures. Threads: pure functions.
#pragma once

#include <viaduct/result.h>

#include <string>
#include <vector>

#include "measure/result/report.h"

namespace viaduct::measure {

struct CompareOptions;

// In words; an error when they may not be compared: other machines or settings than allowed.
Result<std::vector<std::string>> differencesOf(const std::vector<Report>& a,
                                               const std::vector<Report>& b,
                                               const CompareOptions& options);

}  // namespace viaduct::measure
