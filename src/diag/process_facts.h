// The doctor's own process and its kernel, as the files of the node tell them. Threads: pure
// functions.
#pragma once

#include <compare>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "diag/node.h"

namespace viaduct::diag {

// The value of "Key:   value" in a text of such lines; empty: there is none.
std::string valueIn(const std::string& text, std::string_view key);

// Numbers as in linux/capability.h.
enum class Capability : std::uint8_t { kIpcLock = 14, kSysPtrace = 19, kSysAdmin = 21 };

struct ProcessFacts {
  std::optional<std::uint32_t> uid = {};                       // the effective one
  std::optional<std::uint64_t> effective = {}, bounding = {};  // capability sets
  bool seccomp = false;
  bool user_namespace = false;  // its root is not the node's
  bool has(Capability capability) const;
  bool mayGet(Capability capability) const;  // a container's manifest may have named it
};
ProcessFacts processFacts(const Node& node);

// Whether the pod or the node belongs to OpenShift.
bool onOpenShift(const Node& node);

// Of the kernel: 6.8. Empty: unknown.
struct KernelVersion {
  unsigned major = 0, minor = 0;
  auto operator<=>(const KernelVersion&) const = default;
};
std::optional<KernelVersion> kernelVersion(const Node& node);

}  // namespace viaduct::diag
