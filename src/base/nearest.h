// Which of some names are nearly another: for who mistyped one. Threads: pure functions.
#pragma once

#include <span>
#include <string>
#include <string_view>

namespace viaduct::base {

// How many letters to change, add or leave out.
std::size_t distance(std::string_view a, std::string_view b);
// Those within two letters of `word`, large or small, "eth0 or eth1"; empty: none is.
std::string nearest(std::string_view word, std::span<const std::string> names);

}  // namespace viaduct::base
