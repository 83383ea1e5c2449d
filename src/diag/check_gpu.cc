// Checks that NICs can reach the memory of GPUs: the driver, peer memory, and distances.
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cctype>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/text.h"
#include "diag/allocation.h"
#include "diag/gpu_distances.h"
#include "diag/hardware.h"
#include "diag/kernel_log.h"
#include "diag/peer_memory.h"
#include "diag/topics.h"

namespace viaduct::diag {
namespace {

void checkDriver(const std::vector<PciFunction>& gpus, const GpuPeerMemory& memory, bool nics,
                 Findings& findings) {
  if (!memory.driver.empty())
    return findings.fine(fmt::format("NVIDIA driver {}, {} kernel modules.",
                                     driverVersion(memory.driver),
                                     memory.open ? "open" : "closed"));
  // A machine without NICs, such as a desktop, may do without the driver.
  findings.add(
      {.severity = nics ? Severity::kWarning : Severity::kInfo,
       .code = "gpu.no-driver",
       .what = fmt::format("{} NVIDIA GPUs are here, but their driver is not loaded.", gpus.size()),
       .evidence = {{kDriverVersion, "absent"}},
       .cause = "The driver is not installed, or does not match the running kernel.",
       .fix = "modprobe nvidia; dmesg | grep -i nvrm\n"
              "On Kubernetes: look at the pods of the GPU operator's driver.",
       .gain = "Programs can use the GPUs."});
}

void checkExcluded(const Tree& tree, const std::vector<PciFunction>& gpus, Findings& findings) {
  Cases excluded;
  for (const PciFunction& gpu : gpus) {
    const std::string line = lineWith(driverInformation(tree, gpu), "GPU Excluded:");
    if (line.find("Yes") != std::string::npos)
      excluded.add(gpu.address, {"/proc/driver/nvidia/gpus/" + gpu.address + "/information", line});
  }
  if (excluded.empty()) return;
  findings.add(
      {.severity = Severity::kWarning,
       .code = "gpu.excluded",
       .what = fmt::format("The driver excludes the GPU {}.", listed(excluded.names)),
       .evidence = std::move(excluded.evidence),
       .cause =
           "A setting of the NVIDIA driver excludes this GPU, often because the GPU is faulty.",
       .fix = "grep -r NVreg_ExcludedGpus /etc/modprobe.d",
       .gain = "Programs see all GPUs."});
}

std::string peermemMismatch(const Node& node) {
  return node.live.kernel_log ? readKernelLog(node.live.kernel_log->text).peermem.first
                              : std::string();
}

std::vector<Evidence> peerEvidence(const Node& node, const GpuPeerMemory& memory) {
  return {{"/sys/module", "no nvidia_peermem, nv_peer_mem or efa_nv_peermem"},
          {kDriverVersion, memory.driver},
          {"kernel", node.live.kernel.empty() ? "unknown" : node.live.kernel}};
}

void addSymbolMismatch(const Node& node, const GpuPeerMemory& memory, std::string line,
                       Findings& findings) {
  auto evidence = peerEvidence(node, memory);
  evidence.push_back({"kernel log", std::move(line)});
  findings.add(
      {.severity = Severity::kWarning,
       .code = "gpu.peermem-symbols",
       .what =
           "nvidia_peermem does not load, and there is no dma-buf: NICs cannot reach GPU memory.",
       .evidence = std::move(evidence),
       .cause = "It was built against another ib_core than the one that is loaded.",
       .fix = "Build the NVIDIA driver again after MLNX_OFED, then: modprobe nvidia_peermem\n"
              "GPU operator: driver.rdma.enabled=true, driver.rdma.useHostMofed=true\n"
              "Or use dma-buf: open kernel modules on Linux 5.12 or later.",
       .gain = "RDMA reads and writes GPU memory without a copy through host memory."});
}

constexpr auto kPeerFix =
    "One of the two suffices:\n"
    "- peer memory: modprobe nvidia_peermem\n"
    "  (GPU operator: driver.rdma.enabled=true)\n"
    "- dma-buf: the driver's open kernel modules, Linux 5.12 or later, CUDA 11.7,\n"
    "  rdma-core 34";

// The reason why the driver and the kernel do not offer dma-buf.
std::string noDmaBufCause(const GpuPeerMemory& memory) {
  return memory.open ? "dma-buf needs Linux 5.12 or later."
                     : "The closed kernel modules have no dma-buf.";
}

// A NIC needs only dma-buf or a peer memory module, but some programs know only one of the two.
void checkBothWays(const Node& node, const GpuPeerMemory& memory, Findings& findings) {
  if (memory.module.empty())
    return findings.add({.code = "gpu.no-peermem",
                         .what = "NICs reach GPU memory by dma-buf alone: no peer memory module is "
                                 "loaded.",
                         .evidence = peerEvidence(node, memory),
                         .cause = "Programs that register GPU addresses by ibv_reg_mr need the "
                                  "module; those that use ibv_reg_dmabuf_mr do not.",
                         .fix = "If such a program reports Bad address: modprobe nvidia_peermem"});
  if (memory.dmaBuf()) return;
  findings.add({.code = "gpu.no-dma-buf",
                .what = fmt::format("NICs reach GPU memory by {} alone: there is no dma-buf.",
                                    memory.module),
                .evidence = {{"/sys/module/" + memory.module, "present"},
                             {kDriverVersion, memory.driver},
                             {"kernel", node.live.kernel.empty() ? "unknown" : node.live.kernel}},
                .cause = noDmaBufCause(memory),
                .fix = "For programs that register GPU memory by dma-buf only: the driver's open\n"
                       "kernel modules, on Linux 5.12 or later"});
}

void checkPeerMemory(const Node& node, const GpuPeerMemory& memory, Findings& findings) {
  if (memory.driver.empty()) return;
  if (memory.any()) {
    const std::string way = !memory.module.empty() ? memory.module
                            : memory.efa           ? "the EFA driver"
                                                   : "dma-buf";
    findings.fine("NICs reach GPU memory through " + way + ".");
    if (!memory.efa) checkBothWays(node, memory, findings);
    return;
  }
  if (std::string line = peermemMismatch(node); !line.empty())
    return addSymbolMismatch(node, memory, std::move(line), findings);
  const bool unsure = memory.open && !memory.new_kernel;
  findings.add(
      {.severity = unsure ? Severity::kUnknown : Severity::kWarning,
       .code = unsure ? "gpu.peer-memory-unknown" : "gpu.no-peer-memory",
       .what =
           unsure
               ? "Could not tell whether the kernel has dma-buf for RDMA."
               : "NICs cannot reach GPU memory: there is neither a peer memory module nor dma-buf.",
       .evidence = peerEvidence(node, memory),
       .cause = noDmaBufCause(memory),
       .fix = kPeerFix,
       .gain = "RDMA reads and writes GPU memory without a copy through host memory."});
}

void checkGdrcopy(const Tree& tree, const std::vector<RdmaDevice>& nics, Findings& findings) {
  const bool efa = std::ranges::any_of(nics, &RdmaDevice::efa);
  if (!efa) return;
  const bool device = tree.has("/dev/gdrdrv"), module = tree.has("/sys/module/gdrdrv");
  if (device && module) return findings.fine("GDRCopy (gdrdrv) is loaded.");
  findings.add({.severity = module || device ? Severity::kInfo : Severity::kWarning,
                .code = "gpu.no-gdrcopy",
                .what = module ? "GDRCopy is loaded, but /dev/gdrdrv is not in this container."
                               : "GDRCopy (gdrdrv) is not loaded on this EFA node.",
                .evidence = {{"/sys/module/gdrdrv", module ? "present" : "absent"},
                             {"/dev/gdrdrv", device ? "present" : "absent"}},
                .cause = "EFA copies small messages from GPU memory with GDRCopy.",
                .fix = "modprobe gdrdrv (from gdrdrv-dkms; Linux 6.15 needs one newer than 2.5.1)\n"
                       "GPU operator: gdrcopy.enabled=true",
                .gain = "Small messages from GPU memory have a lower latency."});
}

// A folder in LD_LIBRARY_PATH whose libcuda hides the driver's own.
struct HidingFolder {
  std::string folder, evidence, cause;
  Severity severity = Severity::kWarning;
};

// The version in a file name: "libcuda.so.580.159.03" -> "580.159.03".
std::string libcudaVersion(const Tree& tree, const std::string& folder) {
  constexpr std::string_view kName = "libcuda.so.";
  for (const std::string& name : tree.list(folder))
    if (name.starts_with(kName) && name.size() > kName.size() + 1) return name.substr(kName.size());
  return {};
}

std::optional<unsigned> majorOf(const std::string& version) {
  return base::numberIn<unsigned>(version.substr(0, version.find('.')));
}

std::optional<HidingFolder> hidingFolder(const Tree& tree, const std::string& folder,
                                         const std::string& driver) {
  if (folder.find("/stubs") != std::string::npos) {
    const bool takes = tree.has(folder + "/libcuda.so.1");
    return HidingFolder{folder, takes ? "has libcuda.so.1" : "a folder of stubs",
                        "Stubs serve the linker; a program that loads them finds no GPU.",
                        takes ? Severity::kFailure : Severity::kWarning};
  }
  if (folder.find("/compat") == std::string::npos) return std::nullopt;
  const std::string version = libcudaVersion(tree, folder);
  // The compatibility package brings a libcuda of a newer major version than the driver's on
  // purpose.
  if (version.empty() || driver.empty() || version == driver || majorOf(version) > majorOf(driver))
    return std::nullopt;
  return HidingFolder{folder, fmt::format("libcuda {} beside driver {}", version, driver),
                      "A compatibility libcuda of the driver's own branch must match it exactly.",
                      Severity::kFailure};
}

// Whether the folder has the driver's own libcuda. The loader never reaches the folders after it.
bool holdsDriver(const Tree& tree, const std::string& folder) {
  return folder.find("/stubs") == std::string::npos &&
         folder.find("/compat") == std::string::npos && tree.has(folder + "/libcuda.so.1");
}

// Returns the command that removes the folder from the list. If the rest of the list has characters
// that a shell may interpret, returns advice in words instead.
std::string withoutFolder(const std::string& list, const std::string& folder) {
  std::vector<std::string> rest = base::partsOf(list, ':');
  std::erase(rest, folder);
  const std::string joined = fmt::format("{}", fmt::join(rest, ":"));
  const bool plain = std::ranges::all_of(joined, [](char c) {
    return std::isalnum(static_cast<unsigned char>(c)) != 0 ||
           std::string_view("_./:+-").find(c) != std::string_view::npos;
  });
  return plain ? "export LD_LIBRARY_PATH=" + joined : "Remove this folder from LD_LIBRARY_PATH.";
}

void addHidden(const HidingFolder& hides, const std::string& list, Findings& findings) {
  findings.add(
      {.severity = hides.severity,
       .code = "gpu.stub-driver",
       .what = fmt::format("LD_LIBRARY_PATH puts {} before the driver's libcuda.", hides.folder),
       .evidence = {{"LD_LIBRARY_PATH", list}, {hides.folder, hides.evidence}},
       .cause = hides.cause,
       .fix = withoutFolder(list, hides.folder),
       .gain = "CUDA starts (without: \"system not yet initialized\", stub library)."});
}

void checkStubs(const Node& node, const std::string& driver, Findings& findings) {
  const std::string* const path = node.variable("LD_LIBRARY_PATH");
  if (path == nullptr) return;
  for (const std::string& folder : base::partsOf(*path, ':')) {
    if (holdsDriver(node.tree, folder)) return;
    if (const auto hides = hidingFolder(node.tree, folder, driver))
      return addHidden(*hides, *path, findings);
  }
}

constexpr auto kImexFix =
    "In Kubernetes, with NVIDIA's DRA driver: make a ComputeDomain for the pods of the job, and\n"
    "claim a channel by its template in each:\n"
    "  resourceClaims: [{name: imex, resourceClaimTemplateName: NAME}]\n"
    "  containers: [{resources: {claims: [{name: imex}]}}]\n"
    "Docker: --device=/dev/nvidia-caps-imex-channels/channel0\n"
    "On the node: systemctl status nvidia-imex";

// Checks the IMEX channel, through which a process maps memory of another node's GPU.
void checkImexChannel(const Node& node, const std::vector<PciFunction>& gpus, Findings& findings) {
  constexpr auto kDevices = "/proc/devices", kChannels = "/dev/nvidia-caps-imex-channels";
  if (std::ranges::none_of(gpus,
                           [&](const PciFunction& gpu) { return sharesNvlink(node.tree, gpu); }))
    return;
  const FileText devices = node.tree.read(kDevices);
  const bool known = devices.text.find("nvidia-caps-imex-channels") != std::string::npos;
  const auto names = node.tree.list(kChannels);
  if (std::ranges::any_of(names,
                          [](const std::string& name) { return name.starts_with("channel"); }))
    return findings.fine("There is an IMEX channel for NVLink to other nodes.");
  // A host need not have channels itself: it may create them only for its containers.
  const bool pod = inPod(node);
  findings.add(
      {.severity = !pod    ? Severity::kInfo
                   : known ? Severity::kWarning
                           : Severity::kUnknown,
       .code = "gpu.no-imex-channel",
       .what = "This container or node has no IMEX channel, and NVLink to other nodes needs one.",
       .evidence = {{kChannels, "no channel"},
                    {kDevices, known     ? "nvidia-caps-imex-channels"
                               : devices ? "no nvidia-caps-imex-channels"
                                         : "not read"}},
       .cause = known ? "The pod did not ask for a channel, or the service nvidia-imex does "
                        "not run on the node."
                      : "The driver is too old for IMEX, or cannot be seen here.",
       .fix = kImexFix,
       .gain = "GPUs of other nodes in the rack are reached by NVLink (without: the network, "
               "or NIXL_ERR_BACKEND)."});
}

}  // namespace

void checkGpu(const Node& node, Findings& findings) {
  const std::vector<PciFunction> gpus = nvidiaGpus(node.tree);
  if (gpus.empty()) return findings.fine("No NVIDIA GPU: nothing to check.");
  const std::vector<RdmaDevice> nics = rdmaNics(node);
  const GpuPeerMemory memory = peerMemory(node, nics);
  checkDriver(gpus, memory, !nics.empty(), findings);
  checkExcluded(node.tree, gpus, findings);
  checkStubs(node, driverVersion(memory.driver), findings);
  checkImexChannel(node, gpus, findings);
  checkGpuPairs(node.tree, gpus, findings);
  if (nics.empty()) return findings.fine("No RDMA device: GPUDirect RDMA does not matter.");
  checkPeerMemory(node, memory, findings);
  checkGdrcopy(node.tree, nics, findings);
  checkNicDistances(node.tree, gpus, nics, findings);
}

}  // namespace viaduct::diag
