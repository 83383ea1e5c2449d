#include "diag/nodes.h"

#include <algorithm>
#include <map>
#include <tuple>

#include "base/text.h"

namespace viaduct::diag {
namespace {

// The end of the JSON object that begins at `from`. npos: the text ends inside of the object.
std::size_t endOfObject(std::string_view text, std::size_t from) {
  std::size_t depth = 0;
  bool quoted = false;
  for (std::size_t i = from; i < text.size(); ++i) {
    const char c = text[i];
    if (quoted) {
      if (c == '\\')
        ++i;
      else if (c == '"')
        quoted = false;
    } else if (c == '"') {
      quoted = true;
    } else if (c == '{') {
      ++depth;
    } else if (c == '}' && --depth == 0) {
      return i + 1;
    }
  }
  return std::string_view::npos;
}

Error noDiagnosis(std::string why) {
  return {.code = Code::kInvalid, .operation = "doctor", .detail = std::move(why)};
}

// "eth0: up, MTU 9000 bytes, 10.0.0.1/24" without its addresses.
std::string withoutAddresses(const std::string& value) {
  std::string out;
  for (const std::string& part : base::partsOf(value, ',')) {
    const auto words = base::wordsOf(part);
    const bool addresses = !words.empty() && std::ranges::all_of(words, [](std::string_view word) {
      return word.find('/') != std::string_view::npos;
    });
    if (!addresses) out += (out.empty() ? "" : ",") + part;
  }
  return out;
}

// Maps the subject of each fact, such as "interface eth0", to the value. The value of a device's
// fact begins with the device's name.
std::map<std::string, std::string> comparable(const Diagnosis& diagnosis) {
  std::map<std::string, std::string> out;
  for (const NodeFact& fact : diagnosis.facts) {
    if (fact.item == "host") continue;
    const bool interface = fact.item == "interface";
    const std::size_t name = fact.value.find(interface ? ':' : ' ');
    if (!interface && fact.item != "RDMA device") {
      out[fact.item] += (out[fact.item].empty() ? "" : "; ") + fact.value;
    } else if (name != std::string::npos) {
      const std::string value(base::trimmed(std::string_view(fact.value).substr(name + 1)));
      out[fact.item + " " + fact.value.substr(0, name)] =
          interface ? withoutAddresses(value) : value;
    }
  }
  return out;
}

// Adds a node to a list. Nodes come in ascending order, and each may come several times.
void addNode(std::vector<std::size_t>& nodes, std::size_t node) {
  if (nodes.empty() || nodes.back() != node) nodes.push_back(node);
}

void addFinding(std::vector<FindingGroup>& groups, const Finding& finding, std::size_t node) {
  auto group = std::ranges::find_if(groups, [&](const FindingGroup& one) {
    return one.severity == finding.severity && one.code == finding.code;
  });
  if (group == groups.end())
    group = groups.insert(groups.end(), {.severity = finding.severity, .code = finding.code});
  addNode(group->nodes, node);
  auto same = std::ranges::find_if(group->variants, [&](const SameFinding& one) {
    return std::tie(one.finding.what, one.finding.cause, one.finding.fix) ==
           std::tie(finding.what, finding.cause, finding.fix);
  });
  if (same == group->variants.end()) same = group->variants.insert(same, {.finding = finding});
  addNode(same->nodes, node);
}

// The values of one fact, and the nodes that have each of them.
using NodesByValue = std::map<std::optional<std::string>, std::vector<std::size_t>>;

std::vector<std::size_t> nodesWithFact(const NodesByValue& values) {
  std::vector<std::size_t> out;
  for (const auto& [value, nodes] : values) out.insert(out.end(), nodes.begin(), nodes.end());
  std::ranges::sort(out);
  return out;
}

}  // namespace

Result<Diagnosis> lastDiagnosisIn(std::string_view text) {
  constexpr std::string_view kMark = "\"format\": \"viaduct-doctor/";
  if (text.size() > kMostNodeBytes) return noDiagnosis("it is longer than 16 MiB");
  Result<Diagnosis> last =
      noDiagnosis(base::trimmed(text).empty() ? "it is empty"
                                              : "it holds no output of `viaduct doctor --json`");
  for (std::size_t at = 0; (at = text.find(kMark, at)) != std::string_view::npos; ++at) {
    const std::size_t begin = text.rfind('{', at);
    if (begin == std::string_view::npos) continue;
    const std::size_t end = endOfObject(text, begin);
    if (end == std::string_view::npos) {
      if (!last) last = noDiagnosis("it ends within a diagnosis");
      break;
    }
    last = diagnosisFromJson(std::string(text.substr(begin, end - begin)));
    at = end - 1;
  }
  return last;
}

bool isSameHost(std::string_view a, std::string_view b) {
  if (a.size() > b.size()) std::swap(a, b);
  return !a.empty() && b.starts_with(a) && (a.size() == b.size() || b[a.size()] == '.');
}

std::vector<std::string> nodeNamesIn(std::string_view text) {
  constexpr std::string_view kKind = "node/";
  std::string blanks(text);
  std::ranges::replace(blanks, ',', ' ');
  std::vector<std::string> out;
  for (std::string_view word : base::wordsOf(blanks)) {
    if (word.starts_with(kKind)) word.remove_prefix(kKind.size());
    out.emplace_back(word);
  }
  return out;
}

void addSilent(std::span<const std::string> expected, std::vector<NodeResult>& results) {
  for (const std::string& name : expected)
    if (std::ranges::none_of(results,
                             [&](const NodeResult& one) { return isSameHost(one.name, name); }))
      results.push_back({.name = name, .silence = "no result"});
}

std::vector<FindingGroup> groupsOf(std::span<const NodeResult> results) {
  std::vector<FindingGroup> out;
  for (std::size_t node = 0; node < results.size(); ++node)
    if (const auto& diagnosis = results[node].diagnosis)
      for (const Finding& finding : diagnosis->findings.all()) addFinding(out, finding, node);
  const auto more = [](const auto& a, const auto& b) { return a.nodes.size() > b.nodes.size(); };
  for (FindingGroup& group : out) std::ranges::stable_sort(group.variants, more);
  std::ranges::stable_sort(out, [&](const FindingGroup& a, const FindingGroup& b) {
    return a.severity == b.severity ? more(a, b) : a.severity > b.severity;
  });
  return out;
}

std::vector<NodeDifference> differencesOf(std::span<const NodeResult> results) {
  std::map<std::string, NodesByValue> items;
  std::vector<std::size_t> told;
  for (std::size_t node = 0; node < results.size(); ++node) {
    const auto& diagnosis = results[node].diagnosis;
    if (!diagnosis || diagnosis->facts.empty()) continue;
    told.push_back(node);
    for (auto& [item, value] : comparable(*diagnosis)) items[item][value].push_back(node);
  }
  std::vector<NodeDifference> out;
  for (auto& [item, values] : items) {
    const std::vector<std::size_t> have = nodesWithFact(values);
    if (values.size() == 1 && have.size() == told.size()) continue;
    if (have.size() == 1 && item.starts_with("interface ")) continue;
    std::vector<std::size_t> lack;
    std::ranges::set_difference(told, have, std::back_inserter(lack));
    if (!lack.empty()) values[std::nullopt] = std::move(lack);
    NodeDifference& difference = out.emplace_back(NodeDifference{.item = item});
    difference.values.assign(values.begin(), values.end());
    std::ranges::stable_sort(difference.values, [](const auto& a, const auto& b) {
      return a.second.size() > b.second.size();
    });
  }
  return out;
}

}  // namespace viaduct::diag
