// The name of a setting in the remedy of an error. Threads: pure function.
#pragma once

#include <fmt/format.h>

#include <string>
#include <string_view>

namespace viaduct::core {

// Names the Settings field and its environment variable. An error needs both, because
// Agent::open(settings) reads no environment variable.
inline std::string settingName(std::string_view field, std::string_view variable) {
  return fmt::format("Settings::{} (or {} with Agent::open() or settingsFromEnvironment())", field,
                     variable);
}

}  // namespace viaduct::core
