// Rows as lines for a terminal, none longer than 120 columns. Threads: pure functions.
#pragma once

#include <string>

#include "measure/result/row.h"

namespace viaduct::measure {

std::string tableHead();
// One line and, when the row cannot be used, lines that say so and why.
std::string tableLine(const Row& row);

}  // namespace viaduct::measure
