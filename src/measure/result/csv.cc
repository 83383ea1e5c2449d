#include "measure/result/csv.h"

#include <fmt/format.h>

#include <array>
#include <cmath>

namespace viaduct::measure {
namespace {

std::string quoted(const std::string& text) {
  if (text.find_first_of(",\"\r\n") == std::string::npos) return text;
  std::string out = "\"";
  for (const char c : text) {
    if (c == '"') out += '"';
    out += c;
  }
  return out + "\"";
}

std::string figure(std::optional<double> value) {
  return value && std::isfinite(*value) ? fmt::format("{}", *value) : std::string{};
}

// Returns a member of a group that may be missing, or an empty text.
template <class Group>
std::string part(const std::optional<Group>& group, double Group::* member) {
  return group ? figure((*group).*member) : std::string{};
}

std::string pathField(const Row& row) {
  std::string out;
  for (const ProvenShare& s : row.path)
    out += fmt::format("{}{}/{} {} bytes={} ops={} proven={}", out.empty() ? "" : "; ", s.backend,
                       s.way, s.device, s.bytes, s.ops, provenName(s.proven));
  return out;
}

struct Column {
  const char* name;
  std::string (*of)(const Row& row);
};
using R = const Row&;

constexpr std::array kColumns{
    Column{"backend", [](R r) { return r.backend; }},
    Column{"op", [](R r) { return std::string(opKindName(r.op)); }},
    Column{"scheme", [](R r) { return r.scheme; }},
    Column{"block_size", [](R r) { return fmt::to_string(r.block_size); }},
    Column{"batch_size", [](R r) { return fmt::to_string(r.batch_size); }},
    Column{"threads", [](R r) { return fmt::to_string(r.threads); }},
    Column{"pipeline_depth", [](R r) { return fmt::to_string(r.pipeline_depth); }},
    Column{"initiators", [](R r) { return fmt::to_string(r.initiators); }},
    Column{"targets", [](R r) { return fmt::to_string(r.targets); }},
    Column{"bidirectional", [](R r) { return fmt::to_string(r.bidirectional); }},
    Column{"memory", [](R r) { return r.memory; }},
    Column{"iterations", [](R r) { return fmt::to_string(r.iterations); }},
    Column{"seconds", [](R r) { return figure(r.seconds); }},
    Column{"gb_per_s", [](R r) { return figure(r.gb_per_s); }},
    Column{"gb_per_s_spread", [](R r) { return figure(r.gb_per_s_spread); }},
    Column{"latency_mean_us", [](R r) { return part(r.latency_us, &Latency::mean); }},
    Column{"latency_p50_us", [](R r) { return part(r.latency_us, &Latency::p50); }},
    Column{"latency_p90_us", [](R r) { return r.latency_us ? figure(r.latency_us->p90) : ""; }},
    Column{"latency_p99_us", [](R r) { return part(r.latency_us, &Latency::p99); }},
    Column{"latency_p99_9_us", [](R r) { return part(r.latency_us, &Latency::p99_9); }},
    Column{"latency_max_us", [](R r) { return part(r.latency_us, &Latency::max); }},
    Column{"prep_mean_us", [](R r) { return part(r.prep_us, &MeanP99::mean); }},
    Column{"prep_p99_us", [](R r) { return part(r.prep_us, &MeanP99::p99); }},
    Column{"post_mean_us", [](R r) { return part(r.post_us, &MeanP99::mean); }},
    Column{"post_p99_us", [](R r) { return part(r.post_us, &MeanP99::p99); }},
    Column{"tx_mean_us", [](R r) { return part(r.tx_us, &MeanP99::mean); }},
    Column{"tx_p99_us", [](R r) { return part(r.tx_us, &MeanP99::p99); }},
    Column{"cpu_s_per_gb", [](R r) { return figure(r.cpu_s_per_gb); }},
    Column{"cpu_initiators_s", [](R r) { return part(r.cpu_s, &CpuSeconds::initiators); }},
    Column{"cpu_targets_s", [](R r) { return part(r.cpu_s, &CpuSeconds::targets); }},
    Column{"completions_per_s", [](R r) { return figure(r.completions_per_s); }},
    Column{"rate_asked_per_s", [](R r) { return part(r.rate, &OpenLoop::asked_per_s); }},
    Column{"rate_reached_per_s", [](R r) { return part(r.rate, &OpenLoop::reached_per_s); }},
    Column{"ceiling", [](R r) { return r.ceiling ? r.ceiling->name : std::string{}; }},
    Column{"ceiling_gb_per_s", [](R r) { return part(r.ceiling, &Ceiling::gb_per_s); }},
    Column{"ceiling_percent", [](R r) { return part(r.ceiling, &Ceiling::percent); }},
    Column{"path", [](R r) { return pathField(r); }},
    Column{"verified", [](R r) { return std::string(verifiedName(r.verified)); }},
    Column{"verdict", [](R r) { return std::string(verdictName(r.verdict)); }},
    Column{"why", [](R r) { return r.why; }},
    Column{"remark", [](R r) { return r.remark; }},
};

}  // namespace

std::string csvHead() {
  std::string out;
  for (const Column& column : kColumns) out += (out.empty() ? "" : ",") + std::string(column.name);
  return out + "\n";
}

std::string csvLine(const Row& row) {
  std::string out;
  for (const Column& column : kColumns) {
    if (&column != kColumns.data()) out += ',';
    out += quoted(column.of(row));
  }
  return out + "\n";
}

}  // namespace viaduct::measure
