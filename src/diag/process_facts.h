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

inline constexpr auto kLimitsFile = "/proc/self/limits";
inline constexpr std::uint64_t kUnlimited = ~std::uint64_t{0};
struct ProcessLimit {
  std::uint64_t soft = 0, hard = 0;
};
// Reads "Max locked memory         8388608              unlimited            bytes".
std::optional<ProcessLimit> processLimit(const std::string& limits, std::string_view name);
// "unlimited" or "8MiB".
std::string shownLimit(std::uint64_t bytes);

// Whether the pod or the node belongs to OpenShift.
bool onOpenShift(const Node& node);

// The numbers of a version: 1, 14, 39 and 0 of "1.14.39.0". The first part that is not a number
// ends them.
using VersionNumbers = std::vector<unsigned>;
VersionNumbers versionNumbers(std::string_view text);

// The kernel's version, such as 6.8.
std::optional<VersionNumbers> kernelVersion(const Node& node);

}  // namespace viaduct::diag
