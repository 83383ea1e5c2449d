// Turns the environment variables of nixlbench manifests into flags. Threads: pure functions.
#pragma once

#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "base/log.h"

namespace viaduct::app {

struct ManifestWords {
  std::vector<std::string> words = {};           // the flags of the variables, then the typed flags
  std::vector<std::string> said = {};            // a message for each variable that has an effect
  std::optional<base::LogLevel> log_level = {};  // the level that NIXL_LOG_LEVEL names
};

// `variable` returns the value of an environment variable, or nothing. A typed flag wins over a
// variable.
ManifestWords withManifestVariables(
    std::vector<std::string> words, bool as_nixlbench,
    const std::function<std::optional<std::string>(const char*)>& variable);

}  // namespace viaduct::app
