// Writes rows as comma-separated values (RFC 4180): a header, then one line a row. New columns are
// only added at the end. Threads: pure functions.
#pragma once

#include <string>

#include "measure/result/row.h"

namespace viaduct::measure {

std::string csvHead();
// Figures that were not measured are empty fields.
std::string csvLine(const Row& row);

}  // namespace viaduct::measure
