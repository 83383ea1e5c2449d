// Rows as lines for people. Threads: pure functions.
#pragma once

#include <string>

#include "measure/result/row.h"

namespace viaduct::measure {

std::string tableHead();
std::string tableLine(const Row& row);

}  // namespace viaduct::measure
