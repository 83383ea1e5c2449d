// Checks huge pages and shared memory.
#include <fmt/format.h>

#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "base/sizes.h"
#include "base/text.h"
#include "diag/hardware.h"
#include "diag/topics.h"
#include "host/control_groups.h"

namespace viaduct::diag {
namespace {

// A container gets 64 MiB unless its manifest asks for more. NCCL takes about 33 MiB per GPU.
constexpr std::uint64_t kLeastShm = std::uint64_t{1} << 30U;

constexpr auto kShmFix =
    "Mount memory at /dev/shm in the pod:\n"
    "  volumes: [{name: shm, emptyDir: {medium: Memory, sizeLimit: 64Gi}}]\n"
    "  volumeMounts: [{name: shm, mountPath: /dev/shm}]\n"
    "With Docker: --shm-size=64g";

constexpr std::uint64_t kLeastFreeShm = std::uint64_t{64} << 20U;

void checkShmFree(const Node& node, const std::string& size, Findings& findings) {
  const std::uint64_t bytes = node.live.shm_free.value_or(kLeastFreeShm);
  if (bytes >= kLeastFreeShm) return findings.fine("/dev/shm has " + size + ".");
  const std::string free = base::roundedSize(bytes);
  findings.add({.severity = Severity::kWarning,
                .code = "memory.shm-full",
                .what = fmt::format("/dev/shm is full: {} of {} are free.", free, size),
                .evidence = {{"statfs /dev/shm", free + " free"}},
                .cause = "Processes that were killed leave their segments behind.",
                .fix = "ls -lt /dev/shm; lsof /dev/shm\n"
                       "Then remove the files that no process holds.",
                .gain = "Shared memory works (without: No space left on device)."});
}

void checkShm(const Node& node, Findings& findings) {
  if (!node.live.shm_bytes)
    return findings.add(
        {.severity = Severity::kUnknown,
         .code = "memory.shm-unknown",
         .what = "Could not look at the size of /dev/shm.",
         .cause = "The folder of files does not hold it, or /dev/shm is not mounted.",
         .fix = "Run the doctor on the node itself: viaduct doctor --only memory"});
  const std::string size = base::roundedSize(*node.live.shm_bytes);
  if (*node.live.shm_bytes >= kLeastShm) return checkShmFree(node, size, findings);
  // Without GPUs and RDMA, the default size of half the memory is enough.
  const bool matters = hasRdma(node.tree) || hasNvidiaDriver(node.tree);
  findings.add({.severity = matters ? Severity::kWarning : Severity::kInfo,
                .code = "memory.shm-small",
                .what = fmt::format("/dev/shm has only {}.", size),
                .evidence = {{"statfs /dev/shm", size}},
                .cause = "Containers get 64 MiB of shared memory by default.",
                .fix = kShmFix,
                .gain = "NCCL and UCX can use shared memory between the processes of this pod."});
}

std::optional<std::uint64_t> inMeminfo(const std::string& text, const std::string& key) {
  return base::numberIn<std::uint64_t>(valueIn(text, key));
}

constexpr auto kHugePageFix =
    "On the node: sysctl vm.nr_hugepages=2560\n"
    "In the pod: resources: {limits: {hugepages-2Mi: 5120Mi}}";

void addNoHugePages(std::string what, std::vector<Evidence> evidence, Findings& findings) {
  findings.add({.severity = Severity::kWarning,
                .code = "memory.no-huge-pages",
                .what = std::move(what),
                .evidence = std::move(evidence),
                .cause = "The EFA provider falls back to small pages, and logs it.",
                .fix = kHugePageFix,
                .gain = "The provider's buffers need fewer page-table entries of CPU and NIC."});
}

bool wantsHugePages(const Node& node) {
  const std::string* const wants = node.variable("FI_EFA_USE_HUGE_PAGE");
  return wants != nullptr && *wants == "1";
}

void checkWantedHugePages(const Node& node, std::uint64_t total, std::uint64_t free,
                          Findings& findings) {
  constexpr auto kMeminfo = "/proc/meminfo";
  if (total == 0)
    return addNoHugePages("FI_EFA_USE_HUGE_PAGE=1, but this node has no huge pages.",
                          {{kMeminfo, "HugePages_Total: 0"}}, findings);
  if (free == 0)
    return addNoHugePages(
        "FI_EFA_USE_HUGE_PAGE=1, but no huge page is free.",
        {{kMeminfo, fmt::format("HugePages_Total: {}, HugePages_Free: 0", total)}}, findings);
  const auto limit =
      groupLimit(node.tree, "hugetlb", "hugetlb.2MB.max", "hugetlb.2MB.limit_in_bytes");
  if (limit && limit->value == 0)
    return addNoHugePages("FI_EFA_USE_HUGE_PAGE=1, but the pod did not ask for huge pages.",
                          {{limit->path, "0"}}, findings);
  findings.fine(fmt::format("{} of {} huge pages are free.", free, total));
}

void checkHugePages(const Node& node, Findings& findings) {
  const FileText meminfo = node.tree.read("/proc/meminfo");
  const auto total = inMeminfo(meminfo.text, "HugePages_Total");
  const auto free = inMeminfo(meminfo.text, "HugePages_Free");
  if (total && free && wantsHugePages(node))
    return checkWantedHugePages(node, *total, *free, findings);
  if (total && free)
    return findings.fine(fmt::format("{} of {} huge pages are free.", *free, *total));
  findings.add({.severity = wantsHugePages(node) ? Severity::kUnknown : Severity::kInfo,
                .code = "memory.huge-pages-unknown",
                .what = "Could not find the number of huge pages in /proc/meminfo.",
                .evidence = {{"/proc/meminfo", meminfo ? "no HugePages_Total" : "not read"}},
                .cause = "The kernel is built without huge pages, or the file is damaged."});
}

}  // namespace

void checkMemory(const Node& node, Findings& findings) {
  checkShm(node, findings);
  checkHugePages(node, findings);
}

}  // namespace viaduct::diag
