#include "diag/process_facts.h"

#include <algorithm>
#include <charconv>
#include <sstream>

#include "base/sizes.h"
#include "base/text.h"

namespace viaduct::diag {
namespace {

bool holds(const std::optional<std::uint64_t>& set, Capability capability) {
  return set && ((*set >> static_cast<unsigned>(capability)) & 1U) != 0;
}

// Reads "Uid:\t1000\t1000\t1000\t1000": real, effective, saved and filesystem id.
std::optional<std::uint32_t> effectiveUid(const std::string& status) {
  const std::string value = valueIn(status, "Uid");
  const auto words = base::wordsOf(value);
  return words.size() < 2 ? std::nullopt : base::numberIn<std::uint32_t>(words[1]);
}

// Whether the map differs from "         0          0 4294967295", which the first user namespace
// has.
bool isMapped(const std::string& map) {
  std::istringstream words(map);
  std::uint64_t inside = 0, outside = 0, count = 0;
  if (!(words >> inside >> outside >> count)) return false;
  return outside != inside || count < 0xffffffffU;
}

std::optional<std::uint64_t> limitValue(std::string_view word) {
  if (word == "unlimited") return kUnlimited;
  return base::numberIn<std::uint64_t>(word);
}

}  // namespace

std::optional<ProcessLimit> processLimit(const std::string& limits, std::string_view name) {
  const std::string values = valueIn(limits, name, ' ');
  const auto words = base::wordsOf(values);
  if (words.size() < 2) return std::nullopt;
  const auto soft = limitValue(words[0]), hard = limitValue(words[1]);
  return soft && hard ? std::optional(ProcessLimit{*soft, *hard}) : std::nullopt;
}

std::string shownLimit(std::uint64_t bytes) {
  return bytes == kUnlimited ? "unlimited" : base::formatSize(bytes);
}

bool ProcessFacts::has(Capability capability) const { return holds(effective, capability); }
bool ProcessFacts::mayGet(Capability capability) const { return holds(bounding, capability); }

ProcessFacts processFacts(const Node& node) {
  const std::string status = node.tree.read("/proc/self/status").text;
  ProcessFacts out{.uid = effectiveUid(status),
                   .effective = base::numberIn<std::uint64_t>(valueIn(status, "CapEff"), 16),
                   .bounding = base::numberIn<std::uint64_t>(valueIn(status, "CapBnd"), 16)};
  if (!out.uid) out.uid = node.live.uid;
  const std::string seccomp = valueIn(status, "Seccomp");
  out.seccomp = seccomp == "1" || seccomp == "2";
  out.user_namespace = isMapped(node.tree.read("/proc/self/uid_map").text);
  return out;
}

bool onOpenShift(const Node& node) {
  const bool given = std::ranges::any_of(node.variables, [](const auto& one) {
    return one.first.starts_with("PCIDEVICE_OPENSHIFT_IO");
  });
  const std::string release = node.tree.read("/etc/os-release").text;
  return given || release.find("OPENSHIFT_VERSION") != std::string::npos ||
         release.find("ID=\"rhcos\"") != std::string::npos;
}

VersionNumbers versionNumbers(std::string_view text) {
  VersionNumbers out;
  for (bool more = true; more;) {
    unsigned one = 0;
    const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), one);
    if (error != std::errc()) break;
    out.push_back(one);
    text.remove_prefix(static_cast<std::size_t>(end - text.data()));
    more = text.starts_with('.');
    text.remove_prefix(more ? 1 : 0);
  }
  return out;
}

std::optional<VersionNumbers> kernelVersion(const Node& node) {
  const auto numbers = versionNumbers(
      node.live.kernel.empty() ? node.tree.line("/proc/sys/kernel/osrelease") : node.live.kernel);
  return numbers.size() < 2 ? std::nullopt : std::optional(numbers);
}

}  // namespace viaduct::diag
