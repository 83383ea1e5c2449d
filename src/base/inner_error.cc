#include "base/inner_error.h"

#include <fmt/format.h>

namespace viaduct::base {

std::string innerText(const Error& error) {
  std::string out = fmt::format("{}: {}", error.operation, error.detail);
  if (error.os_errno != 0) out += fmt::format(" (errno {})", error.os_errno);
  if (!error.device.empty()) out += fmt::format("; device {}", error.device);
  if (!error.cause.empty()) out += fmt::format("; likely cause: {}", error.cause);
  if (!error.remedy.empty()) out += fmt::format("; what to do: {}", error.remedy);
  return out;
}

}  // namespace viaduct::base
