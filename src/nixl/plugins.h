// The names of backends that programs for NIXL ask for, and their parameters. Threads: any.
// The functions read the environment, and keep no state.
#pragma once

#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "nixl/lists.h"

namespace viaduct::nixl {

using Parameters = std::vector<std::pair<std::string, std::string>>;

// A name that createBackend() accepts.
struct Plugin {
  std::string_view name;
  Memory memory;                // kDram: Viaduct's network, all backends that reach other agents
  std::string_view parameters;  // "name=default", separated by blanks

  bool isNetwork() const { return memory == Memory::kDram; }
  Parameters defaults() const;
};

// The plugins of this build, those of the network first.
std::span<const Plugin> plugins();
// Fails with the reason if there is no plugin of that name.
const Plugin& pluginOf(std::string_view name);

// Viaduct's settings, by variable, for the parameters of a plugin of files or objects.
Parameters settingsOf(const Plugin& plugin, const Parameters& parameters);
// The bucket of all objects; empty for a plugin of files.
std::string bucketOf(const Plugin& plugin, const Parameters& parameters);

}  // namespace viaduct::nixl
