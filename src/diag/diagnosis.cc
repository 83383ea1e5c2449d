#include "diag/diagnosis.h"

namespace viaduct::diag {
namespace {

constexpr auto kFormat = "viaduct-doctor/1";

}  // namespace

// describe() is not in the anonymous namespace, where argument-dependent lookup would miss it.
void describe(auto& json, base::Is<NodeName> auto& node) {
  json.need("hostname", node.hostname);
  json.need("kernel", node.kernel);
  json.need("machine", node.machine);
}
void describe(auto& json, base::Is<Evidence> auto& evidence) {
  json.need("source", evidence.source);
  json.need("value", evidence.value);
}
void describe(auto& json, base::Is<Finding> auto& finding) {
  json.need("topic", finding.topic);
  json.need("code", finding.code);
  json.word("severity", finding.severity, kSeverities);
  json.need("what", finding.what);
  json.need("evidence", finding.evidence);
  json.keep("cause", finding.cause);
  json.keep("fix", finding.fix);
  json.keep("gain", finding.gain);
}
void describe(auto& json, base::Is<NodeFact> auto& fact) {
  json.need("item", fact.item);
  json.need("value", fact.value);
}
void describe(auto& json, base::Is<Fine> auto& fine) {
  json.need("topic", fine.topic);
  json.need("what", fine.what);
}

NodeName nameOf(const Node& node) {
  return {node.live.hostname, node.live.kernel, node.live.machine};
}

base::Json asJson(const Diagnosis& diagnosis) {
  const auto& [node, findings, facts] = diagnosis;
  return {{"format", kFormat},
          {"node", base::JsonWriter::of(node)},
          {"worst", findings.all().empty() ? "fine" : severityName(findings.worst())},
          {"findings", base::JsonWriter::of(findings.all())},
          {"in_order", base::JsonWriter::of(findings.fines())},
          {"facts", base::JsonWriter::of(facts)}};
}

Result<Diagnosis> diagnosisFromJson(const std::string& text) {
  VIADUCT_TRY(const base::Json json, base::parseJson(text));
  Diagnosis out;
  std::string format;
  std::vector<Finding> findings;
  std::vector<Fine> fines;
  base::JsonReader from(json);
  from.need("format", format);
  if (format != kFormat) from.wrong("format", "\"" + format + "\" is not " + kFormat);
  from.need("node", out.node);
  from.need("findings", findings);
  from.need("in_order", fines);
  from.may("facts", out.facts);
  VIADUCT_CHECK(from.status("doctor", "the peer's diagnosis"));
  for (Finding& one : findings) {
    out.findings.begin(one.topic);
    out.findings.add(std::move(one));
  }
  for (Fine& one : fines) {
    out.findings.begin(std::move(one.topic));
    out.findings.fine(std::move(one.what));
  }
  return out;
}

}  // namespace viaduct::diag
