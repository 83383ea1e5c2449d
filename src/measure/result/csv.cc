#include "measure/result/csv.h"

#include <fmt/format.h>

#include <array>
#include <cmath>
#include <concepts>
#include <optional>

#include "measure/result/text.h"

namespace viaduct::measure {
namespace {

std::string quoted(const std::string& text) {
  if (text.find_first_of(",\"\r\n") == std::string::npos) return text;
  return fmt::format("\"{}\"", replaceAll(text, "\"", "\"\""));
}

std::string shown(const std::string& text) { return text; }
std::string shown(std::optional<double> figure) {
  return figure && std::isfinite(*figure) ? fmt::format("{}", *figure) : std::string{};
}
std::string shown(std::integral auto number) { return fmt::to_string(number); }
std::string shown(OpKind op) { return std::string(opKindName(op)); }
std::string shown(Verified verified) { return verifiedName(verified); }
std::string shown(Verdict verdict) { return verdictName(verdict); }

// Returns a member of a row, or of a struct within the row, as text: `field<&Row::prep_us,
// &MeanP99::mean>`. Empty if the struct is missing.
template <auto First, auto... Rest>
std::string field(const auto& from) {
  const auto& member = from.*First;
  if constexpr (sizeof...(Rest) == 0)
    return shown(member);
  else
    return member ? field<Rest...>(*member) : std::string{};
}

template <auto Figure>
std::string ofOperation(const Row& row) {
  const auto* const operation = row.as<Operation>();
  return operation == nullptr ? std::string{} : field<Figure>(*operation);
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

constexpr std::array kColumns{
    Column{"backend", field<&Row::backend>},
    Column{"op", field<&Row::op>},
    Column{"scheme", field<&Row::scheme>},
    Column{"block_size", field<&Row::block_size>},
    Column{"batch_size", field<&Row::batch_size>},
    Column{"threads", field<&Row::threads>},
    Column{"pipeline_depth", field<&Row::pipeline_depth>},
    Column{"initiators", field<&Row::initiators>},
    Column{"targets", field<&Row::targets>},
    Column{"bidirectional", field<&Row::bidirectional>},
    Column{"memory", field<&Row::memory>},
    Column{"iterations", field<&Row::iterations>},
    Column{"seconds", field<&Row::seconds>},
    Column{"gb_per_s", field<&Row::gb_per_s>},
    Column{"gb_per_s_spread", field<&Row::gb_per_s_spread>},
    Column{"latency_mean_us", field<&Row::latency_us, &Latency::mean>},
    Column{"latency_p50_us", field<&Row::latency_us, &Latency::p50>},
    Column{"latency_p90_us", field<&Row::latency_us, &Latency::p90>},
    Column{"latency_p99_us", field<&Row::latency_us, &Latency::p99>},
    Column{"latency_p99_9_us", field<&Row::latency_us, &Latency::p99_9>},
    Column{"latency_max_us", field<&Row::latency_us, &Latency::max>},
    Column{"prep_mean_us", field<&Row::prep_us, &MeanP99::mean>},
    Column{"prep_p99_us", field<&Row::prep_us, &MeanP99::p99>},
    Column{"post_mean_us", field<&Row::post_us, &MeanP99::mean>},
    Column{"post_p99_us", field<&Row::post_us, &MeanP99::p99>},
    Column{"tx_mean_us", field<&Row::tx_us, &MeanP99::mean>},
    Column{"tx_p99_us", field<&Row::tx_us, &MeanP99::p99>},
    Column{"cpu_s_per_gb", field<&Row::cpu_s_per_gb>},
    Column{"cpu_initiators_s", field<&Row::cpu_s, &CpuSeconds::initiators>},
    Column{"cpu_targets_s", field<&Row::cpu_s, &CpuSeconds::targets>},
    Column{"completions_per_s", field<&Row::completions_per_s>},
    Column{"rate_asked_per_s", field<&Row::rate, &OpenLoop::asked_per_s>},
    Column{"rate_reached_per_s", field<&Row::rate, &OpenLoop::reached_per_s>},
    Column{"background_gb_per_s", field<&Row::background, &BackgroundTraffic::gb_per_s>},
    Column{"background_longest_gap_ms",
           field<&Row::background, &BackgroundTraffic::longest_gap_ms>},
    Column{"operation_size", ofOperation<&Operation::size>},
    Column{"operation_us", ofOperation<&Operation::time_us>},
    Column{"algbw_gb_per_s", ofOperation<&Operation::algbw>},
    Column{"busbw_gb_per_s", ofOperation<&Operation::busbw>},
    Column{"operation_wrong", ofOperation<&Operation::wrong>},
    Column{"ceiling", field<&Row::ceiling, &Ceiling::name>},
    Column{"ceiling_gb_per_s", field<&Row::ceiling, &Ceiling::gb_per_s>},
    Column{"ceiling_percent", field<&Row::ceiling, &Ceiling::percent>},
    Column{"path", pathField},
    Column{"verified", field<&Row::verified>},
    Column{"verdict", field<&Row::verdict>},
    Column{"why", field<&Row::why>},
    Column{"remark", field<&Row::remark>},
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
