// A diagnosis as JSON: what `viaduct doctor --json` prints, and one doctor shows another. Threads:
// pure functions.
#pragma once

#include <string>

#include "base/json.h"
#include "diag/findings.h"
#include "diag/node.h"

namespace viaduct::diag {

// Whose diagnosis it is.
struct NodeName {
  std::string hostname = {}, kernel = {}, machine = {};
};
NodeName nameOf(const Node& node);

struct Diagnosis {
  NodeName node = {};
  Findings findings = {};
};

base::Json asJson(const Diagnosis& diagnosis);
// Text that comes from another host.
Result<Diagnosis> diagnosisFromJson(const std::string& text);

}  // namespace viaduct::diag
