// The variables with which manifests of nixlbench configure a benchmark, as flags. Threads: pure
// functions.
#pragma once

#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "base/log.h"

namespace viaduct::app {

struct ManifestWords {
  std::vector<std::string> words = {};  // the flags that the variables stand for, then those typed
  std::vector<std::string> said = {};   // a line for each variable that counts
  std::optional<base::LogLevel> log_level = {};  // of NIXL_LOG_LEVEL
};

// `variable`: the value of an environment variable, or nothing. A typed flag wins over a variable.
ManifestWords withManifestVariables(
    std::vector<std::string> words, bool as_nixlbench,
    const std::function<std::optional<std::string>(const char*)>& variable);

}  // namespace viaduct::app
