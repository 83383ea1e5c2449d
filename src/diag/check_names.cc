// Checks that the names of peers and meeting places resolve.
#include <fmt/format.h>

#include <string>
#include <utility>

#include "diag/allocation.h"
#include "diag/hardware.h"
#include "diag/topics.h"

namespace viaduct::diag {
namespace {

std::string resolverLines(const Tree& tree) {
  std::string out;
  for (const std::string& line : tree.lines("/etc/resolv.conf"))
    if (line.starts_with("nameserver") || line.starts_with("search"))
      out += (out.empty() ? "" : "; ") + line;
  return out.empty() ? "no nameserver" : out;
}

constexpr auto kServiceFix =
    "\nkubectl get service,endpointslices -A | grep NAME\n"
    "A headless service names pods only once they are ready; to name them at once:\n"
    "  spec: {publishNotReadyAddresses: true}";

}  // namespace

void checkNames(const Node& node, Findings& findings) {
  Cases failed;
  for (const auto& [name, tried] : node.live.names)
    if (tried.ok)
      findings.fine(fmt::format("{} resolves to {}.", name, tried.text));
    else
      failed.add(name, {"getaddrinfo " + name, tried.text});
  if (node.live.names.empty())
    return findings.fine("No names of peers or meeting places to resolve.");
  if (failed.empty()) return;
  failed.evidence.push_back({"/etc/resolv.conf", resolverLines(node.tree)});
  findings.add({.severity = Severity::kFailure,
                .code = "names.unresolved",
                .what = fmt::format("These names do not resolve: {}.", listed(failed.names)),
                .evidence = std::move(failed.evidence),
                .cause = "The name is wrong, its service has no pods yet, or the name server does "
                         "not answer.",
                .fix = fmt::format("getent ahosts {}{}", failed.names.front(),
                                   inPod(node) ? kServiceFix : ""),
                .gain = "Members find each other."});
}

}  // namespace viaduct::diag
