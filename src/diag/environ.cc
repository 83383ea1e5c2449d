#include "diag/environ.h"

#include <unistd.h>

#include <algorithm>
#include <string>

namespace viaduct::diag {

Variables variablesIn(std::string_view environ_text) {
  Variables out;
  while (!environ_text.empty()) {
    const std::string_view one = environ_text.substr(0, environ_text.find('\0'));
    environ_text.remove_prefix(std::min(one.size() + 1, environ_text.size()));
    const auto equals = one.find('=');
    if (equals != std::string_view::npos && equals != 0)
      out.try_emplace(std::string(one.substr(0, equals)), one.substr(equals + 1));
  }
  return out;
}

Variables ownVariables() {
  Variables out;
  for (char** one = environ; one != nullptr && *one != nullptr; ++one) out.merge(variablesIn(*one));
  return out;
}

}  // namespace viaduct::diag
