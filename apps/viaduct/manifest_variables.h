// Turns the environment variables of nixlbench manifests into flags. Threads: pure functions.
#pragma once

#include <functional>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "base/log.h"
#include "viaduct/flags.h"

namespace viaduct::app {

struct ManifestWords {
  std::vector<std::string> words = {};           // the flags of the variables, then the typed flags
  std::vector<std::string> said = {};            // a message for each variable that has an effect
  std::optional<base::LogLevel> log_level = {};  // the level that NIXL_LOG_LEVEL names
};

// `known` are the flags of the command; a variable for another flag has no effect. `variable`
// returns the value of an environment variable, or nothing. A typed flag wins over a variable.
ManifestWords withManifestVariables(
    std::vector<std::string> words, std::span<const FlagName> known,
    const std::function<std::optional<std::string>(const char*)>& variable);

}  // namespace viaduct::app
