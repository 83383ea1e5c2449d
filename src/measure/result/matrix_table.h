// The rows of a matrix of GPUs as text for people. Threads: pure functions.
#pragma once

#include <span>
#include <string>

#include "measure/result/row.h"

namespace viaduct::measure::matrix {

// The tables have at most `width` columns, if the figures allow.
std::string matrixText(std::span<const Row> rows, std::size_t width);

}  // namespace viaduct::measure::matrix
