#include "meet/meeting.h"

#include <fmt/format.h>

#include "base/printable.h"

namespace viaduct::meet {

Status checkEntry(const std::string& operation, const std::string& name, const std::string& value) {
  Error wrong{.operation = operation};
  if (name.empty() || name.size() > kMaxNameBytes)
    wrong.detail = fmt::format("a name has 1 to {} bytes", kMaxNameBytes);
  else if (!base::isPrintable(name))
    wrong.detail = "the name has a control character, or bytes that are not UTF-8";
  else if (value.size() > kMaxValueBytes)
    wrong.detail = fmt::format("a value has up to {} bytes, not {}", kMaxValueBytes, value.size());
  else
    return Ok{};
  return wrong;
}

}  // namespace viaduct::meet
