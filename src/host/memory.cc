#include "host/memory.h"

#include <algorithm>
#include <array>
#include <filesystem>
#include <fstream>
#include <optional>
#include <string_view>

#include "base/sizes.h"
#include "host/sysfs.h"

namespace viaduct::host {
namespace {

// The number after `key` in a file of "key number" lines.
std::optional<std::uint64_t> numberOf(const std::filesystem::path& file, std::string_view key) {
  std::ifstream in(file);
  for (std::string word; in >> word; in.ignore(256, '\n')) {
    std::uint64_t number = 0;
    if (word == key && in >> number) return number;
  }
  return std::nullopt;
}

std::optional<std::uint64_t> inMeminfo(const std::string& root, std::string_view key) {
  const auto kibibytes = numberOf(root + "/proc/meminfo", key);
  return kibibytes ? std::optional(*kibibytes * 1024) : std::nullopt;
}

// The file names of one cgroup version. `cache`: page cache that the kernel drops when it needs
// room.
struct MemoryFiles {
  const char* limit;
  const char* used;
  std::array<const char*, 2> cache;
};
constexpr MemoryFiles kVersion1{
    "memory.limit_in_bytes", "memory.usage_in_bytes", {"total_inactive_file", "total_active_file"}};
constexpr MemoryFiles kVersion2{"memory.max", "memory.current", {"inactive_file", "active_file"}};

// The bytes that the limits of one cgroup folder leave, if it has any.
std::optional<std::uint64_t> leftIn(const std::filesystem::path& folder, const MemoryFiles& files) {
  const auto most = numberIn(folder / files.limit);
  auto used = numberIn(folder / files.used);
  if (!most || !used) return std::nullopt;
  for (const char* key : files.cache)
    *used -= std::min(*used, numberOf(folder / "memory.stat", key).value_or(0));
  return *most - std::min(*most, *used);
}

// Reads /proc/self/cgroup, "0::/path" in version 2 and "4:memory:/path" in version 1. A container
// sees its own folder as the top.
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
    // Without its leading slash, which would lead out of `top`.
    const std::string own = line.substr(std::min(second + 2, line.size()));
    // Limits apply to the cgroup's own folder, and to each one above it.
    for (std::filesystem::path path = own;; path = path.parent_path()) {
      if (controllers.empty()) take(leftIn(top / path, kVersion2));
      if (controllers == "memory") take(leftIn(top / "memory" / path, kVersion1));
      if (path.empty()) break;
    }
  }
  return least;
}

}  // namespace

std::uint64_t availableMemory(const std::string& root) {
  const auto kernel = inMeminfo(root, "MemAvailable:"), cgroup = leftInCgroup(root);
  if (!kernel || !cgroup) return kernel.value_or(cgroup.value_or(0));
  return std::min(*kernel, *cgroup);
}

std::uint64_t freeSwap(const std::string& root) { return inMeminfo(root, "SwapFree:").value_or(0); }

std::uint64_t largestCache(const std::string& root) {
  const std::string folder = root + "/sys/devices/system/cpu/cpu0/cache/";
  std::uint64_t most = 0;
  for (const std::string& cache : namesIn(folder))
    if (const auto size = base::parseSize(firstLine(folder + cache + "/size")))  // "2048K"
      most = std::max(most, *size);
  return most;
}

}  // namespace viaduct::host
