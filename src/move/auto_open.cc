#include "move/auto_open.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <utility>

#include "host/pci.h"

namespace viaduct::move {

bool namedIn(const Settings& settings, std::string_view backend) {
  return std::find(settings.backends.begin(), settings.backends.end(), backend) !=
         settings.backends.end();
}

Error notOpenedUnasked(std::string_view backend, std::string detail) {
  return {.code = Code::kUnsupported,
          .operation = fmt::format("open {}", backend),
          .detail = std::move(detail),
          .device = std::string(backend),
          .remedy = fmt::format("name {} among the backends to use it over TCP anyway", backend)};
}

std::string notNear(std::span<const std::string> devices) {
  if (devices.empty()) return {};
  return fmt::format(" (not {}: farther from this process's CPUs, or slower)",
                     fmt::join(devices, ", "));
}

std::string gpuIsStaged(const std::function<std::string()>& why, const host::Tree& tree) {
  if (host::gpuAddresses(tree).empty()) return {};
  return "; GPU memory is staged: " + why();
}

}  // namespace viaduct::move
