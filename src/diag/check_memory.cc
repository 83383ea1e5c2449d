// Huge pages and shared memory.
#include <fmt/format.h>

#include <cstdint>
#include <optional>
#include <sstream>
#include <string>

#include "base/sizes.h"
#include "diag/topics.h"

namespace viaduct::diag {
namespace {

// A container gets 64 MiB unless its manifest says otherwise; NCCL takes about 33 MiB a GPU there.
constexpr std::uint64_t kLeastShm = std::uint64_t{1} << 30U;

constexpr auto kShmFix =
    "Mount memory at /dev/shm in the pod:\n"
    "  volumes: [{name: shm, emptyDir: {medium: Memory, sizeLimit: 64Gi}}]\n"
    "  volumeMounts: [{name: shm, mountPath: /dev/shm}]\n"
    "With Docker: --shm-size=64g";

void checkShm(const Node& node, Report& report) {
  if (!node.live.shm_bytes) {
    report.add({.severity = Severity::kUnknown,
                .code = "memory.shm-unknown",
                .what = "Could not look at the size of /dev/shm.",
                .cause = "The folder of files does not hold it, or /dev/shm is not mounted.",
                .fix = "Run the doctor on the node itself: viaduct doctor --only memory"});
    return;
  }
  const std::string size = base::formatSize(*node.live.shm_bytes);
  if (*node.live.shm_bytes >= kLeastShm) return report.fine("/dev/shm has " + size + ".");
  report.add({.severity = Severity::kWarning,
              .code = "memory.shm-small",
              .what = fmt::format("/dev/shm has only {}.", size),
              .evidence = {{"statfs /dev/shm", size}},
              .cause = "Containers get 64 MiB of shared memory by default.",
              .fix = kShmFix,
              .gain = "NCCL and UCX can use shared memory between the processes of this pod."});
}

std::optional<std::uint64_t> inMeminfo(const std::string& text, const std::string& key) {
  std::istringstream lines(text);
  for (std::string line; std::getline(lines, line);)
    if (line.starts_with(key + ":"))
      return std::strtoull(line.c_str() + key.size() + 1, nullptr, 10);
  return std::nullopt;
}

void checkHugePages(const Node& node, Report& report) {
  const FileText meminfo = node.tree.read("/proc/meminfo");
  const auto total = inMeminfo(meminfo.text, "HugePages_Total");
  const auto free = inMeminfo(meminfo.text, "HugePages_Free");
  if (!total || !free) return;
  const auto wants = node.variables.find("FI_EFA_USE_HUGE_PAGE");
  if (wants != node.variables.end() && wants->second == "1" && *total == 0) {
    report.add({.severity = Severity::kWarning,
                .code = "memory.no-huge-pages",
                .what = "FI_EFA_USE_HUGE_PAGE=1, but this node has no huge pages.",
                .evidence = {{"/proc/meminfo", "HugePages_Total: 0"}},
                .cause = "The EFA provider falls back to small pages, and logs it.",
                .fix = "Reserve huge pages: sysctl vm.nr_hugepages=2560\n"
                       "In the pod: resources: {limits: {hugepages-2Mi: 5120Mi}}"});
    return;
  }
  report.fine(fmt::format("{} of {} huge pages are free.", *free, *total));
}

}  // namespace

void checkMemory(const Node& node, Report& report) {
  checkShm(node, report);
  checkHugePages(node, report);
}

}  // namespace viaduct::diag
