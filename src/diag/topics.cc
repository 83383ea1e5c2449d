#include "diag/topics.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <array>
#include <string>
#include <vector>

namespace viaduct::diag {
namespace {

constexpr std::array kTopics{
    Topic{"rdma", "RDMA devices: ports, rates, firmware, device files", checkRdma, true},
    Topic{"roce", "RDMA over Ethernet: interfaces, addresses, GIDs, MTU", checkRoce, true},
    Topic{"efa", "EFA: count of devices, driver, GPU memory, errors", checkEfa, true},
    Topic{"sriov", "devices that this pod was given, and its virtual functions", checkSriov, true,
          true},
    Topic{"iommu", "DMA translation of NICs and GPUs, and ACS of the bridges between", checkIommu,
          true},
    Topic{"pcie", "speed, width and errors of the PCIe links of NICs and GPUs", checkPcie, true},
    Topic{"gpu", "driver, peer memory, GDRCopy, IMEX channel, distances to NICs and GPUs", checkGpu,
          true},
    Topic{"gpu-access", "libcuda, device files, visible GPUs, and IPC of this process",
          checkGpuAccess, true, true},
    Topic{"limits", "locked memory, open files, and limits of the control group", checkLimits,
          false, true},
    Topic{"memory", "huge pages and /dev/shm", checkMemory},
    Topic{"copy", "copies between processes (CMA), and io_uring", checkCopy, false, true},
    Topic{"storage", "paths of --path, and the S3 store of the settings", checkStorage},
    Topic{"network", "interfaces: addresses, routes, subnets, steady links", checkNetwork},
    Topic{"counters", "error and congestion counters, and whether they grow", checkCounters, true},
    Topic{"cpu", "the governor of the CPU frequency", checkCpu, true},
    Topic{"speed", "causes of slow transfers: shapers, lost packets, buffers, processors, pages",
          checkSpeed, false, true},
    Topic{"libraries", "libfabric, UCX and libibverbs that the loader takes", checkLibraries, false,
          true},
    Topic{"privacy", "protection of data over TCP: the setting, ciphers, the secret", checkPrivacy,
          false, true},
    Topic{"names", "whether peers and meeting places resolve", checkNames, false, true},
    Topic{"clock", "whether the clock is synchronized", checkClock},
    Topic{"kubernetes", "the pod, and what it was given", checkKubernetes, false, true},
    Topic{"variables", "variables that defeat RDMA: NCCL_*, UCX_*, FI_*", checkVariables, false,
          true},
    Topic{"kernel-log", "DMA faults, PCIe errors and failed modules", checkKernelLog},
};

Finding unreadable(const Tree::Unread& one) {
  if (one.denied)
    return {.severity = Severity::kInfo,
            .code = "files.denied",
            .what = fmt::format("Could not read {}: {}.", one.path, one.reason),
            .fix = "Run the doctor as root to include it."};
  return {.severity = Severity::kUnknown,
          .code = "files.unreadable",
          .what = fmt::format("Could not read {}: {}.", one.path, one.reason),
          .cause = "The file is damaged, or the driver behind it does not answer.",
          .fix = "Read the file by hand; if that fails too, reload the driver."};
}

Finding noSys(const std::vector<std::string>& topics) {
  return {.severity = Severity::kUnknown,
          .code = "files.no-sys",
          .what = fmt::format("Could not look at {}: /sys is empty or absent here.",
                              fmt::join(topics, ", ")),
          .evidence = {{"/sys/class, /sys/devices", "absent"}},
          .cause = "The container does not mount sysfs, or the folder of files lacks it.",
          .fix = "Run the doctor where /sys is mounted: mount -t sysfs sysfs /sys"};
}

}  // namespace

std::span<const Topic> topics() { return kTopics; }

Findings diagnose(const Node& node, std::span<const std::string> only) {
  Findings findings;
  const bool sys = node.tree.has("/sys/class") || node.tree.has("/sys/devices");
  std::vector<std::string> not_looked;
  for (const Topic& topic : kTopics) {
    if (!only.empty() && std::find(only.begin(), only.end(), topic.name) == only.end()) continue;
    if (only.empty() && node.for_all_pods && topic.of_process) continue;
    if (topic.needs_sys && !sys) {
      not_looked.emplace_back(topic.name);
      continue;
    }
    const std::size_t unread = node.tree.unread().size();
    findings.begin(std::string(topic.name));
    topic.check(node, findings);
    for (std::size_t i = unread; i < node.tree.unread().size(); ++i)
      findings.add(unreadable(node.tree.unread()[i]));
  }
  if (!not_looked.empty()) {
    findings.begin(not_looked.front());
    findings.add(noSys(not_looked));
  }
  return findings;
}

}  // namespace viaduct::diag
