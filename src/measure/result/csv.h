// Rows as comma-separated values (RFC 4180): a header, then one line for each. Columns are only
// ever added at the end. Threads: pure functions.
#pragma once

#include <string>

#include "measure/result/row.h"

namespace viaduct::measure {

std::string csvHead();
// What was not measured is an empty field.
std::string csvLine(const Row& row);

}  // namespace viaduct::measure
