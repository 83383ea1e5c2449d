// Checks that the kernel allows copies between processes (CMA) and io_uring.
#include <fmt/format.h>

#include <cerrno>
#include <cstring>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "base/sizes.h"
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

constexpr auto kUringGroup = "/proc/sys/kernel/io_uring_group";
constexpr auto kUringLimitFix =
    "ulimit -l unlimited\nServices: LimitMEMLOCK=infinity; Docker: --ulimit memlock=-1";

bool isError(const std::optional<Tried>& tried, int error) {
  return tried && tried->text == ::strerror(error);
}

bool isOlderThan(const Node& node, unsigned major, unsigned minor) {
  const auto version = kernelVersion(node);
  return version && *version < VersionNumbers{major, minor};
}

DeniedBy uringDeniedBy(const Node& node, const std::optional<std::uint64_t>& disabled,
                       const ProcessFacts& process) {
  const std::string allow = "sysctl kernel.io_uring_disabled=0";
  if (disabled == 2U) return {"io_uring is switched off for all (io_uring_disabled 2).", allow};
  if (disabled == 1U)
    return {"io_uring is for CAP_SYS_ADMIN or one group (io_uring_disabled 1).",
            allow + "\nOr for one group: sysctl kernel.io_uring_group=GID"};
  if (isOlderThan(node, 5, 5))
    return {"The kernel is older than 5.5, whose io_uring is the first that Viaduct uses.",
            "Use a newer kernel."};
  if (isError(node.live.io_uring, ENOMEM))
    return {"The queues exceed the limit of locked memory, which counts them before Linux 5.12.",
            kUringLimitFix};
  if (isError(node.live.io_uring, EMFILE))
    return {"The process has no more file descriptors.", "ulimit -n 1048576"};
  if (process.seccomp)
    return {"The container's seccomp profile refuses io_uring_setup.",
            "Use a seccomp profile that allows io_uring_setup, _enter, _register."};
  if (isError(node.live.io_uring, ENOSYS))
    return {"The kernel is built without io_uring, or a sandbox such as gVisor lacks it.",
            "Use a kernel with CONFIG_IO_URING."};
  return {"A security module such as SELinux refuses it.", "ausearch -m avc -ts recent"};
}

std::vector<Evidence> uringEvidence(const Node& node, const std::optional<std::uint64_t>& disabled,
                                    const ProcessFacts& process) {
  std::vector<Evidence> out{
      {"io_uring_setup", node.live.io_uring ? node.live.io_uring->text : "not tried"},
      {kUringDisabled, disabled ? std::to_string(*disabled) : "absent"},
      {"/proc/self/status", process.seccomp ? "Seccomp: on" : "Seccomp: off"}};
  if (disabled == 1U) out.push_back({kUringGroup, node.tree.line(kUringGroup)});
  return out;
}

// Checks that io_uring may register memory, as file transfers do for buffers that they reuse.
void checkUringBuffers(const Node& node, Findings& findings) {
  constexpr std::uint64_t kWanted = base::kGiB;  // the default of VIADUCT_FILE_REGISTER
  const ProcessFacts process = processFacts(node);
  const auto limit = processLimit(node.tree.read(kLimitsFile).text, "Max locked memory");
  const bool refused = node.live.io_uring_buffers && !node.live.io_uring_buffers->ok;
  const bool small = limit && limit->soft < kWanted &&
                     (!process.has(Capability::kIpcLock) || process.user_namespace);
  if (!refused && !small) return findings.fine("io_uring works, with registered memory.");
  const bool old = refused && !isError(node.live.io_uring_buffers, ENOMEM);
  findings.add(
      {.code = "copy.io-uring-buffers",
       .what = refused ? "io_uring works, but registers no memory."
                       : fmt::format("io_uring works, but registers at most {} of memory.",
                                     shownLimit(limit->soft)),
       .evidence = {{"io_uring_register",
                     refused ? node.live.io_uring_buffers->text : "works for one page"},
                    {kLimitsFile, fmt::format("Max locked memory: {}",
                                              limit ? shownLimit(limit->soft) : "unknown")}},
       .cause = old ? "The kernel is older than 5.19, or a sandbox forbids io_uring_register."
                    : "Registered memory is locked, and this limit counts it.",
       .fix = old ? "Use a newer kernel." : kUringLimitFix,
       .gain = "The kernel does not look up the pages of memory at each read and write."});
}

// A denied io_uring is only information: hardened systems deny it, and programs can use threads.
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
  if (!denied) return checkUringBuffers(node, findings);
  const ProcessFacts process = processFacts(node);
  DeniedBy by = uringDeniedBy(node, disabled, process);
  findings.add({.code = "copy.io-uring-denied",
                .what = "Programs cannot use io_uring here; transfers of files use threads.",
                .evidence = uringEvidence(node, disabled, process),
                .cause = std::move(by.cause),
                .fix = std::move(by.fix),
                .gain = "Reads and writes of files cost fewer system calls."});
}

}  // namespace

void checkCopy(const Node& node, Findings& findings) {
  checkCma(node, findings);
  checkUring(node, findings);
}

}  // namespace viaduct::diag
