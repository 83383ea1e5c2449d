// Many nodes' diagnoses side by side: what they have in common, and where they differ. Threads:
// pure functions and values.
#pragma once

#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "diag/diagnosis.h"

namespace viaduct::diag {

// More files, or longer ones, are refused.
inline constexpr std::size_t kMostNodes = 1024;
inline constexpr std::size_t kMostNodeBytes = std::size_t{16} << 20U;

struct NodeResult {
  std::string name = {};
  std::optional<Diagnosis> diagnosis = {};  // nothing: the node has not answered
  std::string silence = {};                 // why it has not answered
};

// Reads the last whole diagnosis in a text: the output of `viaduct doctor --json`, also within a
// log. An error says why there is none.
Result<Diagnosis> lastDiagnosisIn(std::string_view text);

// Whether two names stand for one host: one may lack its domain.
bool isSameHost(std::string_view a, std::string_view b);
// Splits at commas and blanks. Takes "node/NAME" as NAME, as `kubectl get nodes -o name` writes it.
std::vector<std::string> nodeNamesIn(std::string_view text);
// Adds the expected nodes that have no result, as nodes without an answer.
void addSilent(std::span<const std::string> expected, std::vector<NodeResult>& results);

// A finding that nodes report in the same words. `nodes` are indices of the results.
struct SameFinding {
  Finding finding = {};  // with the evidence of the first node
  std::vector<std::size_t> nodes = {};
};
// All findings with one code and severity. The variant that most nodes report comes first.
struct FindingGroup {
  Severity severity = Severity::kInfo;
  std::string code = {};
  std::vector<std::size_t> nodes = {};
  std::vector<SameFinding> variants = {};
};
// Sorts by severity, the worst first, and then by the number of nodes, the highest first.
std::vector<FindingGroup> groupsOf(std::span<const NodeResult> results);

// A fact that is not the same on all nodes. The most frequent value comes first. The nodes of a
// std::nullopt lack the fact.
struct NodeDifference {
  std::string item = {};
  std::vector<std::pair<std::optional<std::string>, std::vector<std::size_t>>> values = {};
};
// Names, addresses, and interfaces of one node alone are left out: these always differ.
std::vector<NodeDifference> differencesOf(std::span<const NodeResult> results);

}  // namespace viaduct::diag
