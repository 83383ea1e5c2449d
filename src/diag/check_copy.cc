// Checks that the kernel allows copies between processes (CMA) and io_uring.
#include <fmt/format.h>

#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "diag/process_facts.h"
#include "diag/topics.h"

namespace viaduct::diag {
namespace {

constexpr auto kPtraceScope = "/proc/sys/kernel/yama/ptrace_scope";
constexpr auto kUringDisabled = "/proc/sys/kernel/io_uring_disabled";

struct DeniedBy {
  std::string cause, fix;
};

// Checks Yama first, because CAP_SYS_PTRACE helps only against its levels 1 and 2.
DeniedBy copyDeniedBy(const std::optional<std::uint64_t>& scope, const ProcessFacts& process) {
  const std::string lower = "sysctl kernel.yama.ptrace_scope=1";
  if (scope && *scope >= 3)
    return {"Yama forbids it to all (ptrace_scope 3); only a restart of the node lowers that.",
            "Remove the setting from /etc/sysctl.d, restart, then: " + lower};
  if (scope && *scope == 2 && !process.has(Capability::kSysPtrace))
    return {"Yama allows it only with CAP_SYS_PTRACE (ptrace_scope 2).",
            lower + "\nOr in the pod: securityContext: {capabilities: {add: [SYS_PTRACE]}}"};
  if (process.seccomp)
    return {"The container's seccomp profile refuses process_vm_readv.",
            "In the pod: securityContext: {capabilities: {add: [SYS_PTRACE]}}\n"
            "Docker: --cap-add SYS_PTRACE"};
  return {"The processes differ in user, or in their namespaces of users or processes.",
          "Run both as one user in one pod; with several containers: shareProcessNamespace: true"};
}

std::vector<Evidence> copyEvidence(const Node& node, const std::optional<std::uint64_t>& scope,
                                   const ProcessFacts& process) {
  std::vector<Evidence> out;
  if (node.live.copy)
    out.push_back(
        {"process_vm_readv of a child", node.live.copy->ok ? "works" : node.live.copy->text});
  out.push_back({kPtraceScope, scope ? std::to_string(*scope) : "absent (no Yama)"});
  out.push_back({"/proc/self/status",
                 fmt::format("Seccomp: {}, CAP_SYS_PTRACE {}", process.seccomp ? "on" : "off",
                             process.has(Capability::kSysPtrace) ? "set" : "clear")});
  return out;
}

void addCopyDenied(const Node& node, const std::optional<std::uint64_t>& scope,
                   const ProcessFacts& process, Findings& findings) {
  DeniedBy by = copyDeniedBy(scope, process);
  findings.add(
      {.severity = Severity::kWarning,
       .code = "copy.cma-denied",
       .what = "A process may not copy from the memory of another (CMA).",
       .evidence = copyEvidence(node, scope, process),
       .cause = std::move(by.cause),
       .fix = std::move(by.fix),
       .gain = "Processes of one node exchange blocks by one copy, not by two or by TCP."});
}

void checkCma(const Node& node, Findings& findings) {
  const auto scope = node.tree.number(kPtraceScope);
  const ProcessFacts process = processFacts(node);
  const bool forbidden =
      scope && (*scope >= 3 || (*scope == 2 && !process.has(Capability::kSysPtrace)));
  if (node.live.copy ? !node.live.copy->ok : forbidden)
    return addCopyDenied(node, scope, process, findings);
  if (!node.live.copy)
    return findings.add({.severity = Severity::kUnknown,
                         .code = "copy.not-tried",
                         .what = "Could not try a copy between two processes (CMA).",
                         .evidence = copyEvidence(node, scope, process),
                         .cause = "The folder of files holds no result of such a copy.",
                         .fix = "On the node: viaduct doctor --only copy"});
  if (scope == 1U && !process.has(Capability::kSysPtrace))
    return findings.add(
        {.code = "copy.relatives-only",
         .what = "A process may copy from its children only, unless they allow more.",
         .evidence = copyEvidence(node, scope, process),
         .cause = "Yama ptrace_scope 1; Viaduct and UCX allow it by PR_SET_PTRACER.",
         .fix = "For programs that do not: sysctl kernel.yama.ptrace_scope=0"});
  findings.fine("A process may copy from the memory of another (CMA).");
}

std::string uringCause(const std::optional<std::uint64_t>& disabled, const ProcessFacts& process) {
  if (disabled == 2U) return "io_uring is switched off for all (io_uring_disabled 2).";
  if (disabled == 1U) return "io_uring is for CAP_SYS_ADMIN or one group (io_uring_disabled 1).";
  if (process.seccomp) return "The container's seccomp profile refuses io_uring_setup.";
  return "The kernel is older than 5.1, or built without io_uring.";
}

std::string uringFix(const std::optional<std::uint64_t>& disabled, const ProcessFacts& process) {
  if (disabled && *disabled > 0) return "sysctl kernel.io_uring_disabled=0";
  if (process.seccomp)
    return "Use a seccomp profile that allows io_uring_setup, _enter, _register.";
  return "Use a kernel with CONFIG_IO_URING.";
}

// Never a fault: hardened systems and containers deny io_uring, and programs have other ways.
void checkUring(const Node& node, Findings& findings) {
  const auto disabled = node.tree.number(kUringDisabled);
  const bool denied = node.live.io_uring ? !node.live.io_uring->ok : disabled.value_or(0) == 2;
  if (!denied && !node.live.io_uring)
    return findings.add(
        {.code = "copy.io-uring-not-tried",
         .what = "io_uring was not tried.",
         .evidence = {{kUringDisabled, disabled ? std::to_string(*disabled) : "absent"}},
         .cause = "The folder of files holds no result of io_uring_setup.",
         .fix = "On the node: viaduct doctor --only copy"});
  if (!denied) return findings.fine("io_uring works.");
  const ProcessFacts process = processFacts(node);
  findings.add(
      {.code = "copy.io-uring-denied",
       .what = "Programs cannot use io_uring here.",
       .evidence = {{"io_uring_setup", node.live.io_uring ? node.live.io_uring->text : "not tried"},
                    {kUringDisabled, disabled ? std::to_string(*disabled) : "absent"},
                    {"/proc/self/status", process.seccomp ? "Seccomp: on" : "Seccomp: off"}},
       .cause = uringCause(disabled, process),
       .fix = uringFix(disabled, process),
       .gain = "Reads and writes of files cost fewer system calls."});
}

}  // namespace

void checkCopy(const Node& node, Findings& findings) {
  checkCma(node, findings);
  checkUring(node, findings);
}

}  // namespace viaduct::diag
