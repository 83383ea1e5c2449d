#include "base/environment.h"

#include <fmt/ranges.h>
#include <sys/auxv.h>
#include <unistd.h>

#include <algorithm>
#include <cstdlib>

namespace viaduct::base {

bool environmentIsTrusted() { return ::getauxval(AT_SECURE) == 0; }

const char* variable(const char* name) {
  return environmentIsTrusted() ? std::getenv(name) : nullptr;
}

std::string variableText(const char* name) {
  const char* const value = variable(name);
  return value == nullptr ? "" : value;
}

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
