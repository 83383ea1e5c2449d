// Checks the kernel log for faults of DMA, PCIe and peer memory.
#include <fmt/format.h>

#include <algorithm>
#include <set>
#include <string>
#include <vector>

#include "diag/hardware.h"
#include "diag/kernel_log.h"
#include "diag/topics.h"

namespace viaduct::diag {
namespace {

Evidence logEvidence(const LogLines& lines) {
  return {"kernel log", lines.count == 1
                            ? lines.first
                            : fmt::format("{} ({} such lines)", lines.first, lines.count)};
}

std::string functionsText(const LogLines& lines) {
  return lines.functions.empty()
             ? "a device"
             : listed(std::vector<std::string>(lines.functions.begin(), lines.functions.end()));
}

// The PCI functions of RDMA NICs and NVIDIA GPUs, and the bridges above them.
std::set<std::string> functionsThatMatter(const Node& node) {
  std::set<std::string> out;
  for (const RdmaDevice& nic : rdmaNics(node))
    if (nic.function) out.insert(nic.function->place.pci.begin(), nic.function->place.pci.end());
  for (const PciFunction& gpu : nvidiaGpus(node.tree))
    out.insert(gpu.place.pci.begin(), gpu.place.pci.end());
  return out;
}

// Whether the lines concern our functions. Lines that name no function count, because they may
// concern ours.
bool matters(const LogLines& lines, const std::set<std::string>& ours) {
  return lines.functions.empty() ||
         std::ranges::any_of(lines.functions,
                             [&](const std::string& one) { return ours.contains(one); });
}

void addPageFaults(const LogLines& lines, bool ours, bool rdma, Findings& findings) {
  const bool known = ours && !lines.functions.empty();
  findings.add({.severity = !rdma   ? Severity::kInfo
                            : known ? Severity::kFailure
                                    : Severity::kWarning,
                .code = "kernel-log.page-faults",
                .what = fmt::format("The IOMMU refused DMA of {}.", functionsText(lines)),
                .evidence = {logEvidence(lines)},
                .cause = "The device used an address that the IOMMU does not translate.",
                .fix = "Let the IOMMU pass the device through: viaduct doctor --only iommu\n"
                       "shows the setting. If it is set: update the device's driver.",
                .gain = "Transfers complete (without: IBV_WC_LOC_PROT_ERR)."});
}

// Fewer corrected errors are normal, because links report some while they train.
constexpr std::size_t kManyCorrected = 10;

void addPcieErrors(const KernelLog& log, const std::set<std::string>& ours, bool rdma,
                   Findings& findings) {
  const bool grave = log.pcie_uncorrected.count > 0;
  const LogLines& lines = grave ? log.pcie_uncorrected : log.pcie_corrected;
  const bool serious = rdma && matters(lines, ours) && (grave || lines.count >= kManyCorrected);
  findings.add({.severity = serious ? Severity::kWarning : Severity::kInfo,
                .code = "kernel-log.pcie-errors",
                .what = fmt::format("The kernel logged {} PCIe errors of {}.",
                                    grave ? "uncorrected" : "corrected", functionsText(lines)),
                .evidence = {logEvidence(lines)},
                .cause = "A bad slot, riser or cable, or a card that lost power.",
                .fix =
                    "dmesg | grep -A4 'PCIe Bus Error'\n"
                    "If they go on: seat the card again, replace the riser, update the firmware.",
                .gain = "The link no longer replays packets, and no uncorrected error drops the "
                        "device from the bus."});
}

void addPeermem(const LogLines& lines, Findings& findings) {
  findings.add({.code = "kernel-log.peermem",
                .what = "nvidia_peermem did not load.",
                .evidence = {logEvidence(lines)},
                .cause = "It was built against another ib_core than the one that is loaded.",
                .fix =
                    "Build the NVIDIA driver again after MLNX_OFED, then: modprobe nvidia_peermem\n"
                    "With dma-buf it is not needed: viaduct doctor --only gpu tells."});
}

void addLimited(const LogLines& lines, Findings& findings) {
  findings.add({.code = "kernel-log.pcie-bandwidth",
                .what = fmt::format("At start the kernel found the PCIe link of {} limited.",
                                    functionsText(lines)),
                .evidence = {logEvidence(lines)},
                .cause = "The slot or a bridge is slower than the card.",
                .fix = "viaduct doctor --only pcie tells whether the ports need more."});
}

void addNotRead(const Node& node, Findings& findings) {
  const std::string restricted = node.tree.line("/proc/sys/kernel/dmesg_restrict");
  findings.add(
      {.code = "kernel-log.denied",
       .what = "The kernel log could not be read.",
       .evidence = {{"/dev/kmsg", node.live.kernel_log ? node.live.kernel_log->text : "not tried"},
                    {"/proc/sys/kernel/dmesg_restrict",
                     restricted.empty() ? "absent" : restricted}},
       .cause = "Only root may read it where kernel.dmesg_restrict is 1.",
       .fix = "sudo viaduct doctor --only kernel-log\n"
              "Or for all users: sysctl kernel.dmesg_restrict=0",
       .gain = "The doctor also sees DMA faults and PCIe errors."});
}

}  // namespace

void checkKernelLog(const Node& node, Findings& findings) {
  if (!node.live.kernel_log || !node.live.kernel_log->ok) return addNotRead(node, findings);
  const KernelLog log = readKernelLog(node.live.kernel_log->text);
  const bool rdma = hasRdma(node.tree);
  const bool names_devices =
      log.page_faults.count + log.pcie_corrected.count + log.pcie_uncorrected.count > 0;
  const auto ours = names_devices ? functionsThatMatter(node) : std::set<std::string>();
  if (log.page_faults.count > 0)
    addPageFaults(log.page_faults, matters(log.page_faults, ours), rdma, findings);
  if (log.pcie_corrected.count + log.pcie_uncorrected.count > 0)
    addPcieErrors(log, ours, rdma, findings);
  if (log.peermem.count > 0) addPeermem(log.peermem, findings);
  if (log.pcie_limited.count > 0) addLimited(log.pcie_limited, findings);
  findings.fine("The kernel log was read.");
}

}  // namespace viaduct::diag
