// Checks for known causes of slow transfers. The benchmark explains its slow rows with the same
// table of causes.
#include <fmt/format.h>

#include <cctype>
#include <string>
#include <utility>

#include "causes/causes.h"
#include "diag/topics.h"

namespace viaduct::diag {
namespace {

std::string capital(std::string text) {
  text.front() = static_cast<char>(std::toupper(static_cast<unsigned char>(text.front())));
  return text;
}

}  // namespace

void checkSpeed(const Node& node, Findings& findings) {
  const auto causes = causes::causesOf(causes::hereAndNow(node.tree, node.live.links));
  for (const causes::Cause& cause : causes)
    findings.add({.severity = cause.certain ? Severity::kWarning : Severity::kInfo,
                  .code = fmt::format("speed.{}", cause.name),
                  .what = capital(cause.what) + ".",
                  .fix = capital(cause.remedy),
                  .gain = "Transfers are faster."});
  if (causes.empty()) findings.fine("No known cause of slow transfers is here.");
}

}  // namespace viaduct::diag
