#include "base/environment.h"

#include <fmt/ranges.h>
#include <unistd.h>

#include <algorithm>

namespace viaduct::base {

std::vector<std::string> environmentOf(std::string_view prefix) {
  std::vector<std::string> out;
  for (char** one = environ; one != nullptr && *one != nullptr; ++one)
    if (std::string_view(*one).starts_with(prefix)) out.emplace_back(*one);
  std::sort(out.begin(), out.end());
  return out;
}

std::string environmentText(std::string_view prefix) {
  return fmt::format("{}", fmt::join(environmentOf(prefix), " "));
}

}  // namespace viaduct::base
