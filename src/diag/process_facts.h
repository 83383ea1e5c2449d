// The doctor's own process and its kernel, read from the node's files. Threads: pure functions.
#pragma once

#include <compare>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "diag/node.h"

namespace viaduct::diag {

// The value of the line "Key:   value" in a text; empty: there is none.
std::string valueIn(const std::string& text, std::string_view key);

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

// The kernel's version, such as 6.8.
struct KernelVersion {
  unsigned major = 0, minor = 0;
  auto operator<=>(const KernelVersion&) const = default;
};
std::optional<KernelVersion> kernelVersion(const Node& node);

}  // namespace viaduct::diag
