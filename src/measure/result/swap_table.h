// Rows of swapping as text for people. Threads: pure functions.
#pragma once

#include <span>
#include <string>

#include "measure/result/row.h"

namespace viaduct::measure::swap {

// The table has at most `width` columns, if the figures allow.
std::string swapText(std::span<const Row> rows, std::size_t width);

}  // namespace viaduct::measure::swap
