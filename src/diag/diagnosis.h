// A diagnosis as JSON: `viaduct doctor --json` prints it, and another host's doctor reads it.
// Threads: pure functions.
#pragma once

#include <string>
#include <vector>

#include "base/json.h"
#include "diag/findings.h"
#include "diag/node.h"

namespace viaduct::diag {

// The node that was diagnosed.
struct NodeName {
  std::string hostname = {}, kernel = {}, machine = {};
};
NodeName nameOf(const Node& node);

// A row of the node's card: "kernel" and its value. An item may have several rows.
struct NodeFact {
  std::string item = {}, value = {};
};

struct Diagnosis {
  NodeName node = {};
  Findings findings = {};
  std::vector<NodeFact> facts = {};  // empty: an older doctor, or the facts were not asked for
};

base::Json asJson(const Diagnosis& diagnosis);
// Parses text from another host.
Result<Diagnosis> diagnosisFromJson(const std::string& text);

}  // namespace viaduct::diag
