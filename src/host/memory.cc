#include "host/memory.h"

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <optional>
#include <sstream>

#include "host/sysfs.h"

namespace viaduct::host {
namespace {

std::optional<std::uint64_t> availableInKernel(const std::string& root) {
  std::ifstream in(root + "/proc/meminfo");
  for (std::string key; in >> key; in.ignore(256, '\n')) {
    std::uint64_t kibibytes = 0;
    if (key == "MemAvailable:" && in >> kibibytes) return kibibytes * 1024;
  }
  return std::nullopt;
}

// What the limits of one cgroup folder leave, if it has any.
std::optional<std::uint64_t> leftIn(const std::filesystem::path& folder, const char* limit,
                                    const char* used) {
  const auto most = numberIn(folder / limit), now = numberIn(folder / used);
  if (!most || !now) return std::nullopt;
  return *most > *now ? *most - *now : 0;
}

// Version 2: "0::/path"; version 1: "4:memory:/path". A container sees its own folder as the top.
std::optional<std::uint64_t> leftInCgroup(const std::string& root) {
  std::optional<std::uint64_t> least;
  const auto take = [&](std::optional<std::uint64_t> left) {
    if (left) least = std::min(least.value_or(*left), *left);
  };
  const std::filesystem::path top = root + "/sys/fs/cgroup";
  std::ifstream in(root + "/proc/self/cgroup");
  for (std::string line; std::getline(in, line);) {
    const auto first = line.find(':'), second = line.find(':', first + 1);
    if (second == std::string::npos) continue;
    const std::string controllers = line.substr(first + 1, second - first - 1);
    // Without the slash it begins with, which would lead out of `top`.
    const std::string own = line.substr(std::min(second + 2, line.size()));
    for (const std::string& path : {own, std::string()}) {
      if (controllers.empty()) take(leftIn(top / path, "memory.max", "memory.current"));
      if (controllers == "memory")
        take(leftIn(top / "memory" / path, "memory.limit_in_bytes", "memory.usage_in_bytes"));
    }
  }
  return least;
}

}  // namespace

std::uint64_t availableMemory(const std::string& root) {
  const auto kernel = availableInKernel(root), cgroup = leftInCgroup(root);
  if (!kernel || !cgroup) return kernel.value_or(cgroup.value_or(0));
  return std::min(*kernel, *cgroup);
}

}  // namespace viaduct::host
