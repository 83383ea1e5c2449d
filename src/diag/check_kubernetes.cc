// Describes the pod of this process, and the devices that it got.
#include <fmt/format.h>

#include <algorithm>
#include <string>
#include <vector>

#include "diag/allocation.h"
#include "diag/process_facts.h"
#include "diag/topics.h"
#include "host/control_groups.h"

namespace viaduct::diag {
namespace {

constexpr auto kServiceAccount = "/var/run/secrets/kubernetes.io/serviceaccount/namespace";

// Whether the process has all the capabilities that a privileged container has.
bool isPrivileged(const ProcessFacts& process) {
  return process.has(Capability::kSysAdmin) && process.has(Capability::kIpcLock) &&
         process.has(Capability::kSysPtrace);
}

// The devices and GPUs that plugins gave to this pod.
std::vector<Evidence> podEvidence(const Node& node) {
  std::vector<Evidence> out;
  const std::string space = node.tree.line(kServiceAccount);
  if (!space.empty()) out.push_back({kServiceAccount, space});
  if (!node.live.hostname.empty()) out.push_back({"hostname", node.live.hostname});
  for (const auto& [key, value] : node.variables)
    if ((key.starts_with("PCIDEVICE_") && !key.ends_with("_INFO")) ||
        key == "NVIDIA_VISIBLE_DEVICES" || key == "CUDA_VISIBLE_DEVICES")
      out.push_back({key, value});
  if (const auto cpu = groupFile(node.tree, "cpu", "cpu.max"))
    out.push_back({cpu->path, cpu->text});
  return out;
}

}  // namespace

void checkKubernetes(const Node& node, Findings& findings) {
  if (!inPod(node)) return findings.fine("This is no Kubernetes pod.");
  const std::string space = node.tree.line(kServiceAccount);
  findings.add({.code = "kubernetes.pod",
                .what = space.empty()
                            ? "This is a Kubernetes pod."
                            : fmt::format("This is a Kubernetes pod of namespace {}.", space),
                .evidence = podEvidence(node)});
  const bool given = std::ranges::any_of(
      node.variables, [](const auto& one) { return one.first.starts_with("PCIDEVICE_"); });
  if (!isPrivileged(processFacts(node))) return;
  findings.add(
      {.code = "kubernetes.privileged",
       .what = "The pod is privileged: it sees all devices of the node.",
       .evidence = {{"/proc/self/status", "CAP_SYS_ADMIN, CAP_IPC_LOCK and CAP_SYS_PTRACE"}},
       .cause = given ? "The PCIDEVICE_ variables say which of them are the pod's own."
                      : "No PCIDEVICE_ variable says which of them are the pod's own.",
       .fix = "viaduct env"});
}

}  // namespace viaduct::diag
