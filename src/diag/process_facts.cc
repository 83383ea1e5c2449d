#include "diag/process_facts.h"

#include <algorithm>
#include <charconv>
#include <sstream>

namespace viaduct::diag {
namespace {

template <class Number>
std::optional<Number> wholeIn(std::string_view text, int base) {
  Number out{};
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), out, base);
  if (error != std::errc() || end == text.data()) return std::nullopt;
  return out;
}

bool holds(const std::optional<std::uint64_t>& set, Capability capability) {
  return set && ((*set >> static_cast<unsigned>(capability)) & 1U) != 0;
}

// Reads "Uid:\t1000\t1000\t1000\t1000": real, effective, saved and filesystem id.
std::optional<std::uint32_t> effectiveUid(const std::string& status) {
  std::istringstream words(valueIn(status, "Uid"));
  std::string word;
  words >> word >> word;
  return wholeIn<std::uint32_t>(word, 10);
}

// Whether the map differs from "         0          0 4294967295", which the first user namespace
// has.
bool isMapped(const std::string& map) {
  std::istringstream words(map);
  std::uint64_t inside = 0, outside = 0, count = 0;
  if (!(words >> inside >> outside >> count)) return false;
  return outside != inside || count < 0xffffffffU;
}

}  // namespace

std::string valueIn(const std::string& text, std::string_view key) {
  std::istringstream lines(text);
  for (std::string line; std::getline(lines, line);) {
    if (!line.starts_with(key) || line.size() <= key.size() || line[key.size()] != ':') continue;
    const auto first = line.find_first_not_of(" \t", key.size() + 1);
    if (first == std::string::npos) return {};
    return line.substr(first, line.find_last_not_of(" \t\r") - first + 1);
  }
  return {};
}

bool ProcessFacts::has(Capability capability) const { return holds(effective, capability); }
bool ProcessFacts::mayGet(Capability capability) const { return holds(bounding, capability); }

ProcessFacts processFacts(const Node& node) {
  const std::string status = node.tree.read("/proc/self/status").text;
  ProcessFacts out{.uid = effectiveUid(status),
                   .effective = wholeIn<std::uint64_t>(valueIn(status, "CapEff"), 16),
                   .bounding = wholeIn<std::uint64_t>(valueIn(status, "CapBnd"), 16)};
  if (!out.uid) out.uid = node.live.uid;
  const std::string seccomp = valueIn(status, "Seccomp");
  out.seccomp = seccomp == "1" || seccomp == "2";
  out.user_namespace = isMapped(node.tree.read("/proc/self/uid_map").text);
  return out;
}

bool onOpenShift(const Node& node) {
  const bool given = std::any_of(node.variables.begin(), node.variables.end(), [](const auto& one) {
    return one.first.starts_with("PCIDEVICE_OPENSHIFT_IO");
  });
  const std::string release = node.tree.read("/etc/os-release").text;
  return given || release.find("OPENSHIFT_VERSION") != std::string::npos ||
         release.find("ID=\"rhcos\"") != std::string::npos;
}

std::optional<KernelVersion> kernelVersion(const Node& node) {
  const std::string text =
      node.live.kernel.empty() ? node.tree.line("/proc/sys/kernel/osrelease") : node.live.kernel;
  const auto point = text.find('.');
  if (point == std::string::npos) return std::nullopt;
  const auto major = wholeIn<unsigned>(text, 10);
  const auto minor = wholeIn<unsigned>(std::string_view(text).substr(point + 1), 10);
  if (!major || !minor) return std::nullopt;
  return KernelVersion{*major, *minor};
}

}  // namespace viaduct::diag
