#include "host/memory.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <string>

#include "base/sizes.h"
#include "base/text.h"
#include "host/control_groups.h"

namespace viaduct::host {
namespace {

// The file names of one cgroup version. `cache`: page cache that the kernel drops when it needs
// room.
struct MemoryFiles {
  const char* limit;
  const char* used;
  std::array<const char*, 2> cache;
};
constexpr MemoryFiles kVersion1{"/memory.limit_in_bytes",
                                "/memory.usage_in_bytes",
                                {"total_inactive_file", "total_active_file"}};
constexpr MemoryFiles kVersion2{"/memory.max", "/memory.current", {"inactive_file", "active_file"}};

// The bytes that the limits of one cgroup folder leave, if it has any.
std::optional<std::uint64_t> leftIn(const Tree& tree, const GroupFolder& folder) {
  const MemoryFiles& files = folder.version == 1 ? kVersion1 : kVersion2;
  const auto most = tree.number(folder.path + files.limit);
  auto used = tree.number(folder.path + files.used);
  if (!most || !used) return std::nullopt;
  const std::string stat = tree.read(folder.path + "/memory.stat").text;
  for (const char* key : files.cache)
    *used -= std::min(*used, base::numberIn<std::uint64_t>(valueIn(stat, key, ' ')).value_or(0));
  return *most - std::min(*most, *used);
}

}  // namespace

std::uint64_t availableMemory(const Tree& tree) {
  auto least = memInfo(tree, "MemAvailable");
  for (const GroupFolder& folder : groupFolders(tree, "memory"))
    if (const auto left = leftIn(tree, folder)) least = std::min(least.value_or(*left), *left);
  return least.value_or(0);
}

std::uint64_t freeSwap(const Tree& tree) { return memInfo(tree, "SwapFree").value_or(0); }

std::optional<std::uint64_t> memInfo(const Tree& tree, std::string_view key) {
  // In "16308788 kB", kB means 1024 bytes.
  const std::string text = valueIn(tree.read("/proc/meminfo").text, key);
  const auto kibibytes = base::numberIn<std::uint64_t>(text.substr(0, text.find(' ')));
  return kibibytes ? std::optional(*kibibytes * 1024) : std::nullopt;
}

std::uint64_t largestCache(const Tree& tree) {
  const std::string folder = "/sys/devices/system/cpu/cpu0/cache";
  std::uint64_t most = 0;
  for (const std::string& cache : tree.list(folder))
    if (const auto size =
            base::parseSize(tree.line(fmt::format("{}/{}/size", folder, cache))))  // "2048K"
      most = std::max(most, *size);
  return most;
}

}  // namespace viaduct::host
