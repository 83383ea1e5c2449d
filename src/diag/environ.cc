#include "diag/environ.h"

#include <unistd.h>

#include <string>

#include "base/text.h"

namespace viaduct::diag {

Variables variablesIn(std::string_view environ_text) {
  Variables out;
  for (const std::string& one : base::partsOf(environ_text, '\0'))
    if (const auto equals = one.find('='); equals != std::string::npos && equals != 0)
      out.try_emplace(one.substr(0, equals), one.substr(equals + 1));
  return out;
}

Variables ownVariables() {
  Variables out;
  for (char** one = environ; one != nullptr && *one != nullptr; ++one) out.merge(variablesIn(*one));
  return out;
}

}  // namespace viaduct::diag
