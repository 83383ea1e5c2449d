// Sorts many numbers, such as the addresses of a list of blocks. Threads: plain functions.
#pragma once

#include <cstdint>
#include <vector>

namespace viaduct::base {

// Ascending. About 4 ns a number where std::sort takes 40 (docs/measured/planning.md): only the
// bits in which the numbers differ are looked at.
void sortNumbers(std::vector<std::uint64_t>& numbers);

}  // namespace viaduct::base
