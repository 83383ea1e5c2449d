// Finds the names that a mistyped one may have meant. Threads: pure functions.
#pragma once

#include <span>
#include <string>
#include <string_view>

namespace viaduct::base {

// The number of letters to change, add or leave out.
std::size_t distance(std::string_view a, std::string_view b);
// The names within two letters of `word`, in either case, as "eth0 or eth1"; empty: there are none.
std::string nearest(std::string_view word, std::span<const std::string> names);

}  // namespace viaduct::base
