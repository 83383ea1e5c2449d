// The doctor's own process and its kernel, read from the node's files. Threads: pure functions.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "diag/node.h"

namespace viaduct::diag {

// Numbers of linux/capability.h.
enum class Capability : std::uint8_t { kIpcLock = 14, kSysPtrace = 19, kSysAdmin = 21 };

struct ProcessFacts {
  std::optional<std::uint32_t> uid = {};                       // the effective user id
  std::optional<std::uint64_t> effective = {}, bounding = {};  // capability sets
  bool seccomp = false;
  bool user_namespace = false;  // the process's root user is not the node's
  bool has(Capability capability) const;
  bool mayGet(Capability capability) const;  // whether a container's manifest may have granted it
};
ProcessFacts processFacts(const Node& node);

// Whether the pod or the node belongs to OpenShift.
bool onOpenShift(const Node& node);

// The numbers of a version: 1, 14, 39 and 0 of "1.14.39.0". The first part that is not a number
// ends them.
using VersionNumbers = std::vector<unsigned>;
VersionNumbers versionNumbers(std::string_view text);

// The kernel's version, such as 6.8.
std::optional<VersionNumbers> kernelVersion(const Node& node);

}  // namespace viaduct::diag
