#include "base/environment.h"

#include <unistd.h>

namespace viaduct::base {

std::string environmentText(std::string_view prefix) {
  std::string out;
  for (char** one = environ; one != nullptr && *one != nullptr; ++one)
    if (std::string_view(*one).starts_with(prefix))
      out += (out.empty() ? "" : " ") + std::string(*one);
  return out;
}

}  // namespace viaduct::base
