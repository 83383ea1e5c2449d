#include "host/control_groups.h"

#include <fmt/format.h>

#include "base/lists.h"
#include "base/text.h"

namespace viaduct::host {
namespace {

constexpr auto kGroupRoot = "/sys/fs/cgroup";
// Version 1 shows "no limit" as a number near 2^63.
constexpr std::uint64_t kNoLimit = std::uint64_t{1} << 62U;

// Adds the group's folder and all folders above it. A container sees its own group at the top.
void addFolders(const std::string& top, std::string path, int version,
                std::vector<GroupFolder>& out) {
  while (!path.empty() && path != "/") {
    out.push_back({top + path, version});
    path.resize(path.rfind('/') == std::string::npos ? 0 : path.rfind('/'));
  }
  out.push_back({top, version});
}

std::vector<std::string> groupFiles(const Tree& tree, const std::string& controller,
                                    const std::string& name, const std::string& old_name) {
  return base::mapped(groupFolders(tree, controller), [&](const GroupFolder& folder) {
    return folder.path + "/" + (folder.version == 1 ? old_name : name);
  });
}

}  // namespace

// Reads "0::/kubepods/pod1" and "4:memory:/docker/1".
std::vector<GroupFolder> groupFolders(const Tree& tree, const std::string& controller) {
  std::vector<GroupFolder> old, unified;
  for (const std::string& line : tree.lines("/proc/self/cgroup")) {
    const auto first = line.find(':');
    const auto second = first == std::string::npos ? first : line.find(':', first + 1);
    if (second == std::string::npos || line.find("/..") != std::string::npos) continue;
    const std::string controllers = line.substr(first + 1, second - first - 1);
    const std::string path = line.substr(second + 1);
    if (controllers.empty()) addFolders(kGroupRoot, path, 2, unified);
    if (base::contains(base::partsOf(controllers), controller))
      addFolders(fmt::format("{}/{}", kGroupRoot, controller), path, 1, old);
  }
  return base::joined(old, unified);
}

bool knowsGroups(const Tree& tree) {
  return tree.line("/proc/self/cgroup").find(':') != std::string::npos;
}

std::optional<GroupLimit> groupLimit(const Tree& tree, const std::string& controller,
                                     const std::string& name, const std::string& old_name) {
  std::optional<GroupLimit> out;
  for (const std::string& path : groupFiles(tree, controller, name, old_name))
    if (const auto value = tree.number(path); value && *value < kNoLimit)
      if (!out || *value < out->value) out = GroupLimit{path, *value};
  return out;
}

std::string damagedGroupFile(const Tree& tree, const std::string& controller,
                             const std::string& name, const std::string& old_name) {
  for (const std::string& path : groupFiles(tree, controller, name, old_name))
    if (tree.read(path) && !tree.number(path) && tree.line(path) != "max") return path;
  return {};
}

std::optional<GroupFile> groupFile(const Tree& tree, const std::string& controller,
                                   const std::string& name) {
  for (const std::string& path : groupFiles(tree, controller, name, name))
    if (FileText found = tree.read(path)) return GroupFile{path, std::move(found.text)};
  return std::nullopt;
}

}  // namespace viaduct::host
