#include "diag/report_json.h"

#include <array>
#include <optional>
#include <string_view>

namespace viaduct::diag {
namespace {

using base::Json;
using base::JsonReader;

constexpr auto kFormat = "viaduct-doctor/1";

std::optional<Severity> severityNamed(std::string_view name) {
  for (const Severity one :
       {Severity::kInfo, Severity::kUnknown, Severity::kWarning, Severity::kFailure})
    if (name == severityName(one)) return one;
  return std::nullopt;
}

Json asJson(const Finding& finding) {
  Json evidence = Json::array();
  for (const Evidence& one : finding.evidence)
    evidence.push_back({{"source", one.source}, {"value", one.value}});
  return {{"topic", finding.topic},
          {"code", finding.code},
          {"severity", severityName(finding.severity)},
          {"what", finding.what},
          {"evidence", evidence},
          {"cause", finding.cause},
          {"fix", finding.fix},
          {"gain", finding.gain}};
}

}  // namespace

// Outside the anonymous namespace, because argument-dependent lookup does not search there.
static void read(JsonReader& from, NodeName& node) {
  from.need("hostname", node.hostname);
  from.need("kernel", node.kernel);
  from.need("machine", node.machine);
}
static void read(JsonReader& from, Evidence& evidence) {
  from.need("source", evidence.source);
  from.need("value", evidence.value);
}
static void read(JsonReader& from, Finding& finding) {
  from.need("topic", finding.topic);
  from.need("code", finding.code);
  from.word("severity", finding.severity, severityNamed, "info, unknown, warning, failure");
  from.need("what", finding.what);
  from.need("evidence", finding.evidence);
  from.may("cause", finding.cause);
  from.may("fix", finding.fix);
  from.may("gain", finding.gain);
}
static void read(JsonReader& from, Fine& fine) {
  from.need("topic", fine.topic);
  from.need("what", fine.what);
}

NodeName nameOf(const Node& node) {
  return {node.live.hostname, node.live.kernel, node.live.machine};
}

Json asJson(const Diagnosis& diagnosis) {
  const auto& [node, report] = diagnosis;
  Json out{
      {"format", kFormat},
      {"node", {{"hostname", node.hostname}, {"kernel", node.kernel}, {"machine", node.machine}}},
      {"worst", report.findings().empty() ? "fine" : severityName(report.worst())},
      {"findings", Json::array()},
      {"in_order", Json::array()}};
  for (const Finding& finding : report.findings()) out["findings"].push_back(asJson(finding));
  for (const Fine& fine : report.fines())
    out["in_order"].push_back({{"topic", fine.topic}, {"what", fine.what}});
  return out;
}

Result<Diagnosis> diagnosisFromJson(const std::string& text) {
  VIADUCT_TRY(const Json json, base::parseJson(text));
  Diagnosis out;
  std::string format;
  std::vector<Finding> findings;
  std::vector<Fine> fines;
  JsonReader from(json);
  from.need("format", format);
  if (format != kFormat) from.wrong("format", "\"" + format + "\" is not " + kFormat);
  from.need("node", out.node);
  from.need("findings", findings);
  from.need("in_order", fines);
  VIADUCT_CHECK(from.status("doctor", "the peer's diagnosis"));
  for (Finding& one : findings) {
    out.report.begin(one.topic);
    out.report.add(std::move(one));
  }
  for (Fine& one : fines) {
    out.report.begin(std::move(one.topic));
    out.report.fine(std::move(one.what));
  }
  return out;
}

}  // namespace viaduct::diag
