// Sorts many numbers, such as the addresses of a list of blocks. Threads: plain functions.
#pragma once

#include <cstdint>
#include <vector>

namespace viaduct::base {

// Ascending. Takes about 4 ns a number where std::sort takes 40 (docs/measured/planning.md),
// because it looks only at the bits in which the numbers differ.
void sortNumbers(std::vector<std::uint64_t>& numbers);

}  // namespace viaduct::base
