#include "viaduct/version.h"

#include <fmt/format.h>
#include <viaduct/backend.h>
#include <viaduct/settings.h>

#include <utility>

namespace viaduct::app {

measure::Build thisBuild() {
  return {.version = VIADUCT_VERSION, .commit = std::string(gitCommit())};
}

std::string versionText() {
  std::string out = fmt::format("viaduct {}", VIADUCT_VERSION);
  if (!gitCommit().empty()) out += fmt::format(" (git {})", gitCommit());
  out += "\nbackends: ";
  std::string_view comma;
  for (const std::string_view name : builtInBackends()) {
    if (backendFacts(name)->for_tests) continue;
    const std::string library = backendLibrary(name);
    out += fmt::format("{}{}", std::exchange(comma, ", "), name);
    if (!library.empty()) out += fmt::format(" ({})", library);
  }
  return out + "\n";
}

}  // namespace viaduct::app
