// How an error's remedy names a setting. Threads: pure function.
#pragma once

#include <fmt/format.h>

#include <string>
#include <string_view>

namespace viaduct::core {

// Both ways to set it: an agent that got a Settings reads no variable.
inline std::string settingName(std::string_view field, std::string_view variable) {
  return fmt::format("Settings::{} (or {} with Agent::open() or settingsFromEnvironment())", field,
                     variable);
}

}  // namespace viaduct::core
