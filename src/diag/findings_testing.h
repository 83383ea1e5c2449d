// Helpers for tests that plant a fault and look for its finding. Threads: the test's.
#pragma once

#include <gtest/gtest.h>

#include <string>
#include <string_view>
#include <vector>

#include "diag/findings.h"
#include "diag/node_testing.h"
#include "diag/topics.h"

namespace viaduct::diag::testing {

// The codes of all findings above info, of all topics.
inline std::vector<std::string> codesAboveInfo(const NodeFolder& folder) {
  std::vector<std::string> out;
  const Findings findings = diagnose(folder.node());
  for (const Finding& finding : findings.all())
    if (finding.severity != Severity::kInfo) out.push_back(finding.code);
  return out;
}

// The first finding with this code, which has to be there.
inline Finding findingOf(const NodeFolder& folder, std::string_view code) {
  const Findings findings = diagnose(folder.node());
  for (const Finding& finding : findings.all())
    if (finding.code == code) return finding;
  ADD_FAILURE() << "no finding " << code;
  return {};
}

}  // namespace viaduct::diag::testing
