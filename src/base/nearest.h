// Finds the names that a mistyped one may have meant. Threads: pure functions.
#pragma once

#include <span>
#include <string>
#include <string_view>

namespace viaduct::base {

// The number of letters to change, add or leave out to turn `a` into `b`.
std::size_t distance(std::string_view a, std::string_view b);
// The names that differ from `word` in at most two letters, regardless of case: "eth0 or eth1".
// Empty: there are none.
std::string nearest(std::string_view word, std::span<const std::string> names);

}  // namespace viaduct::base
