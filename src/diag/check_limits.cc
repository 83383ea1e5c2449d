// Checks limits of the process and its control group: locked memory, files, memory, RDMA objects.
#include <fmt/format.h>

#include <algorithm>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/lists.h"
#include "base/sizes.h"
#include "base/text.h"
#include "diag/allocation.h"
#include "diag/hardware.h"
#include "diag/process_facts.h"
#include "diag/topics.h"
#include "host/control_groups.h"

namespace viaduct::diag {
namespace {

constexpr auto kStatusFile = "/proc/self/status";

void addUnreadLimit(const std::string& name, Findings& findings) {
  findings.add({.severity = Severity::kUnknown,
                .code = "limits.unknown",
                .what = fmt::format("Could not find \"{}\" in {}.", name, kLimitsFile),
                .evidence = {{kLimitsFile, "no such line"}},
                .cause = "/proc is not mounted here, or the file is damaged.",
                .fix = "ulimit -l; ulimit -n"});
}

// The command depends on the container runtime, since each lifts its containers' limit differently.
std::string memlockFix(const Node& node, const ProcessLimit& limit) {
  if (limit.hard == kUnlimited) return "ulimit -l unlimited\n(viaduct exec does it for a program.)";
  if (onOpenShift(node))
    return "On each node, by a MachineConfig: /etc/crio/crio.conf.d/10-memlock.conf\n"
           "  [crio.runtime]\n"
           "  default_ulimits = [\"memlock=-1:-1\"]\n"
           "Or in the pod: securityContext: {runAsUser: 0, capabilities: {add: [IPC_LOCK]}}";
  if (inPod(node))
    return "In the pod: securityContext: {runAsUser: 0, capabilities: {add: [IPC_LOCK]}}\n"
           "Or on each node: /etc/systemd/system/containerd.service.d/memlock.conf\n"
           "  [Service]\n"
           "  LimitMEMLOCK=infinity\n"
           "then: systemctl daemon-reload; systemctl restart containerd kubelet";
  return "Login shells: /etc/security/limits.d/memlock.conf, then log in again\n"
         "  * - memlock unlimited\n"
         "Services: systemctl edit SERVICE, then [Service] LimitMEMLOCK=infinity\n"
         "Docker: docker run --ulimit memlock=-1";
}

// Whether the pod's manifest added IPC_LOCK, which puts it into the bounding set. Outside a pod, a
// full bounding set says nothing, because most processes have one.
bool wasGivenIpcLock(const Node& node, const ProcessFacts& process) {
  return process.mayGet(Capability::kIpcLock) &&
         (inPod(node) || !process.mayGet(Capability::kSysAdmin));
}

// The reason why a granted IPC_LOCK has no effect; empty: it has effect, or was not granted.
std::string inertReason(const Node& node, const ProcessFacts& process) {
  if (process.has(Capability::kIpcLock) && process.user_namespace)
    return "The kernel takes IPC_LOCK of the node's own user namespace alone.";
  if (process.uid.value_or(0) != 0 && !process.has(Capability::kIpcLock) &&
      wasGivenIpcLock(node, process))
    return fmt::format(
        "A capability that a manifest adds becomes effective for uid 0 only; this process runs as "
        "uid {}.",
        *process.uid);
  return {};
}

std::string setText(const std::optional<std::uint64_t>& set) {
  return set ? fmt::format("{:016x}", *set) : "unknown";
}

std::vector<Evidence> memlockEvidence(const ProcessLimit& limit, const ProcessFacts& process) {
  return {{kLimitsFile, fmt::format("Max locked memory: soft {}, hard {}", shownLimit(limit.soft),
                                    shownLimit(limit.hard))},
          {kStatusFile, fmt::format("uid {}, CapEff {} (bit 14, IPC_LOCK, is {})",
                                    process.uid ? std::to_string(*process.uid) : "unknown",
                                    setText(process.effective),
                                    process.has(Capability::kIpcLock) ? "set" : "clear")}};
}

constexpr auto kMemlockGain =
    "Memory regions and queues can be registered (without: Cannot allocate memory).";

void addInert(const std::string& reason, const ProcessLimit& limit, const ProcessFacts& process,
              bool rdma, Findings& findings) {
  findings.add(
      {.severity = rdma ? Severity::kFailure : Severity::kInfo,
       .code = "limits.ipc-lock-inert",
       .what = fmt::format("IPC_LOCK has no effect here; locked memory is limited to {}.",
                           shownLimit(limit.soft)),
       .evidence = memlockEvidence(limit, process),
       .cause = reason,
       .fix = "Run as root: securityContext: {runAsUser: 0, capabilities: {add: [IPC_LOCK]}}\n"
              "Or give the file the capability: setcap cap_ipc_lock+ep /path/to/program\n"
              "Or lift the limit on each node: LimitMEMLOCK=infinity for containerd,\n"
              "default_ulimits = [\"memlock=-1:-1\"] for CRI-O",
       .gain = kMemlockGain});
}

void checkMemlock(const Node& node, const std::string& text, bool rdma, Findings& findings) {
  const auto limit = processLimit(text, "Max locked memory");
  if (!limit) return addUnreadLimit("Max locked memory", findings);
  if (limit->soft == kUnlimited) return findings.fine("Locked memory is unlimited.");
  const ProcessFacts process = processFacts(node);
  if (process.has(Capability::kIpcLock) && !process.user_namespace)
    return findings.fine("IPC_LOCK lifts the limit of locked memory.");
  if (const std::string reason = inertReason(node, process); !reason.empty())
    return addInert(reason, *limit, process, rdma, findings);
  findings.add({.severity = !rdma                      ? Severity::kInfo
                            : limit->soft < base::kGiB ? Severity::kFailure
                                                       : Severity::kWarning,
                .code = "limits.memlock",
                .what = fmt::format("Locked memory is limited to {}.", shownLimit(limit->soft)),
                .evidence = memlockEvidence(*limit, process),
                .cause = "RDMA pins the memory that it registers, and this limit counts it.",
                .fix = memlockFix(node, *limit),
                .gain = kMemlockGain});
}

constexpr std::uint64_t kFewFiles = 4096;

void checkOpenFiles(const std::string& text, bool rdma, Findings& findings) {
  const auto limit = processLimit(text, "Max open files");
  if (!limit) return addUnreadLimit("Max open files", findings);
  const std::string soft = limit->soft == kUnlimited ? "unlimited" : fmt::format("{}", limit->soft);
  if (limit->soft >= kFewFiles) return findings.fine("Open files: " + soft + ".");
  const bool may = limit->hard >= kFewFiles;
  const std::uint64_t wanted = may ? std::min(limit->hard, std::uint64_t{1048576}) : 1048576;
  findings.add(
      {.severity = rdma ? Severity::kWarning : Severity::kInfo,
       .code = "limits.open-files",
       .what = fmt::format("A process may open only {} files.", soft),
       .evidence = {{kLimitsFile,
                     "Max open files: soft " + soft + ", hard " +
                         (limit->hard == kUnlimited ? "unlimited" : std::to_string(limit->hard))}},
       .cause = "Each connection, completion channel and shared segment takes a file.",
       .fix = may ? fmt::format("ulimit -n {}", wanted)
                  : "Docker: --ulimit nofile=1048576\n"
                    "Services: LimitNOFILE=1048576\n"
                    "Login shells: * - nofile 1048576 in /etc/security/limits.d/nofile.conf",
       .gain = "Jobs with many peers do not stop at \"Too many open files\"."});
}

// In a published report, a process needed about 128 GiB to enumerate 32 EFA devices.
constexpr std::uint64_t kMemoryPerEfa = 4 * base::kGiB;
constexpr std::uint64_t kLeastMemory = 8 * base::kGiB;

std::uint64_t memoryNeeded(const Node& node) {
  std::uint64_t efa = 0;
  for (const RdmaDevice& device : rdmaDevices(node.tree)) efa += device.efa() ? 1 : 0;
  return std::max(kLeastMemory, efa * kMemoryPerEfa);
}

void addUnknownGroups(const std::string& path, bool rdma, Findings& findings) {
  findings.add({.severity = rdma ? Severity::kUnknown : Severity::kInfo,
                .code = "limits.groups-unknown",
                .what = fmt::format("Could not find the limit of memory in {}.", path),
                .evidence = {{path, "absent, empty or garbage"}},
                .cause = "The folder of files lacks control groups, or the file is damaged.",
                .fix = "cat /proc/self/cgroup; cat /sys/fs/cgroup/memory.max"});
}

void checkGroupMemory(const Node& node, bool rdma, Findings& findings) {
  constexpr auto kGroupsFile = "/proc/self/cgroup";
  if (!knowsGroups(node.tree)) return addUnknownGroups(kGroupsFile, rdma, findings);
  if (const std::string path =
          damagedGroupFile(node.tree, "memory", "memory.max", "memory.limit_in_bytes");
      !path.empty())
    return addUnknownGroups(path, rdma, findings);
  const auto limit = groupLimit(node.tree, "memory", "memory.max", "memory.limit_in_bytes");
  if (!limit) return findings.fine("No control group limits memory.");
  const std::string shown = base::roundedSize(limit->value);
  const std::uint64_t needed = rdma ? memoryNeeded(node) : 0;
  if (limit->value >= needed)
    return findings.fine(fmt::format("The control group has {} of memory.", shown));
  findings.add({.severity = Severity::kWarning,
                .code = "limits.memory",
                .what = fmt::format("The control group has only {} of memory.", shown),
                .evidence = {{limit->path, fmt::format("{}", limit->value)}},
                .cause = "Each RDMA device takes memory for its queues; 32 EFA devices took about "
                         "128 GiB in one report.",
                .fix = fmt::format("In the pod: resources: {{limits: {{memory: {}Gi}}}}",
                                   needed / base::kGiB),
                .gain = "The job is not killed for lack of memory when it opens its devices."});
}

// Reads "mlx5_0 hca_handle=2 hca_object=2000". The value "max" is no limit.
bool limitsObjects(const std::string& line) {
  const auto value = line.find('=');
  return value != std::string::npos && line.find_first_of("0123456789", value) != std::string::npos;
}

void checkGroupRdma(const Tree& tree, bool rdma, Findings& findings) {
  const auto file = groupFile(tree, "rdma", "rdma.max");
  if (!file) return;
  std::string fix = "On the node, as root:";
  std::vector<std::string> limited;
  for (const std::string& line : base::only(base::partsOf(file->text, '\n'), limitsObjects)) {
    limited.push_back(line);
    if (const std::string device = line.substr(0, line.find(' ')); isDeviceName(device))
      fix += fmt::format("\necho '{} hca_handle=max hca_object=max' > {}", device, file->path);
  }
  if (limited.empty()) return findings.fine("No control group limits RDMA objects.");
  findings.add({.severity = rdma ? Severity::kWarning : Severity::kInfo,
                .code = "limits.rdma",
                .what = "A control group limits the RDMA objects of this process.",
                .evidence = {{file->path, listed(limited)}},
                .cause = "Each open device takes an hca_handle; queues and memory regions are "
                         "hca_objects.",
                .fix = std::move(fix),
                .gain = "Jobs with many peers can make all their queues."});
}

constexpr std::uint64_t kFewProcesses = 1024;

void checkGroupProcesses(const Tree& tree, bool rdma, Findings& findings) {
  const auto limit = groupLimit(tree, "pids", "pids.max", "pids.max");
  if (!limit || limit->value >= kFewProcesses) return;
  findings.add(
      {.severity = rdma ? Severity::kWarning : Severity::kInfo,
       .code = "limits.processes",
       .what = fmt::format("The control group allows only {} processes and threads (pids.max).",
                           limit->value),
       .evidence = {{limit->path, fmt::format("{}", limit->value)}},
       .cause = "Inference engines start hundreds of threads.",
       .fix = "Kubernetes: podPidsLimit: 16384 in the kubelet's configuration\n"
              "Docker: --pids-limit -1",
       .gain = "Threads start (without: Resource temporarily unavailable)."});
}

}  // namespace

void checkLimits(const Node& node, Findings& findings) {
  const bool rdma = hasRdma(node.tree);
  const std::string text = node.tree.read(kLimitsFile).text;
  checkMemlock(node, text, rdma, findings);
  checkOpenFiles(text, rdma, findings);
  checkGroupMemory(node, rdma, findings);
  checkGroupRdma(node.tree, rdma, findings);
  checkGroupProcesses(node.tree, rdma, findings);
}

}  // namespace viaduct::diag
