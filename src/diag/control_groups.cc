#include "diag/control_groups.h"

#include <vector>

#include "base/lists.h"
#include "base/text.h"

namespace viaduct::diag {
namespace {

constexpr auto kGroupRoot = "/sys/fs/cgroup";
// Version 1 shows "no limit" as a number near 2^63.
constexpr std::uint64_t kNoLimit = std::uint64_t{1} << 62U;

// The process's paths in version 2, and in version 1 for one controller.
struct GroupPaths {
  std::optional<std::string> unified = {}, old = {};
};

// Reads "0::/kubepods/pod1" and "4:memory:/docker/1".
GroupPaths groupPaths(const Tree& tree, const std::string& controller) {
  GroupPaths out;
  for (const std::string& line : tree.lines("/proc/self/cgroup")) {
    const auto first = line.find(':');
    const auto second = first == std::string::npos ? first : line.find(':', first + 1);
    if (second == std::string::npos || line.find("/..") != std::string::npos) continue;
    const std::string controllers = line.substr(first + 1, second - first - 1);
    if (controllers.empty()) out.unified = line.substr(second + 1);
    if (base::contains(base::partsOf(controllers), controller)) out.old = line.substr(second + 1);
  }
  return out;
}

// The group's folder and all folders above it. A container sees its own group at the top.
std::vector<std::string> foldersUpTo(const std::string& top, std::string path) {
  std::vector<std::string> out;
  while (!path.empty() && path != "/") {
    out.push_back(top + path);
    path.resize(path.rfind('/') == std::string::npos ? 0 : path.rfind('/'));
  }
  out.push_back(top);
  return out;
}

std::vector<std::string> groupFiles(const Tree& tree, const std::string& controller,
                                    const std::string& name, const std::string& old_name) {
  const GroupPaths paths = groupPaths(tree, controller);
  std::vector<std::string> out;
  const auto add = [&](const std::string& top, const std::string& path, const std::string& file) {
    for (const std::string& folder : foldersUpTo(top, path)) out.push_back(folder + "/" + file);
  };
  if (paths.old && !old_name.empty())
    add(std::string(kGroupRoot) + "/" + controller, *paths.old, old_name);
  if (paths.unified) add(kGroupRoot, *paths.unified, name);
  return out;
}

}  // namespace

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

}  // namespace viaduct::diag
