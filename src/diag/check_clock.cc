// Checks that the node's clock is synchronized.
#include "diag/hardware.h"
#include "diag/topics.h"

namespace viaduct::diag {

void checkClock(const Node& node, Findings& findings) {
  const bool rdma = hasRdma(node.tree);
  if (!node.live.clock)
    return findings.add({.severity = rdma ? Severity::kUnknown : Severity::kInfo,
                         .code = "clock.unknown",
                         .what = "Could not tell whether the clock is synchronized.",
                         .cause = "The folder of files holds no result of adjtimex.",
                         .fix = "timedatectl show -p NTPSynchronized"});
  if (node.live.clock->ok) return findings.fine("The clock is synchronized.");
  // Without RDMA the clock matters less: a single machine has no other clock to differ from.
  findings.add({.severity = rdma ? Severity::kWarning : Severity::kInfo,
                .code = "clock.unsynchronized",
                .what = "The kernel reports the clock as unsynchronized.",
                .evidence = {{"adjtimex", node.live.clock->text}},
                .cause = "No time service runs on the node, or it has no server.",
                .fix = "systemctl enable --now chronyd; chronyc tracking",
                .gain = "Logs of several nodes can be compared, and certificates are valid."});
}

}  // namespace viaduct::diag
