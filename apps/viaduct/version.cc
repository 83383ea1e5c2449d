#include "viaduct/version.h"

#include <fmt/format.h>
#include <viaduct/settings.h>

#include <utility>

#include "viaduct/bench_values.h"

namespace viaduct::app {

std::string versionText() {
  std::string out = fmt::format("viaduct {}", VIADUCT_VERSION);
  if (!gitCommit().empty()) out += fmt::format(" (git {})", gitCommit());
  out += "\nbackends: ";
  std::string_view comma;
  for (const std::string_view name : offeredBackends()) {
    const std::string library = backendLibrary(name);
    out += fmt::format("{}{}", std::exchange(comma, ", "), name);
    if (!library.empty()) out += fmt::format(" ({})", library);
  }
  return out + "\n";
}

}  // namespace viaduct::app
