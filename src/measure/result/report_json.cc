#include "measure/result/report_json.h"

#include <fmt/format.h>

#include "base/sizes.h"
#include "measure/result/report.h"
#include "measure/result/row_json.h"

// The JSON reader and writer find these functions by argument-dependent lookup.
namespace viaduct::host {

void describe(auto& json, base::Is<Interface> auto& i) {
  json.need("name", i.name);
  json.keep("up", i.up);
  json.keep("addresses", i.addresses);
  json.may("mbit_per_s", i.mbit_per_s);
}

void describe(auto& json, base::Is<Facts> auto& facts) {
  json.need("hostname", facts.hostname);
  json.keep("boot_id", facts.boot_id);
  json.keep("kernel", facts.kernel);
  json.keep("cpu_model", facts.cpu_model);
  json.keep("cores", facts.cores);
  json.keep("memory_bytes", facts.memory);
  json.keep("interfaces", facts.interfaces);
}

}  // namespace viaduct::host

namespace viaduct::measure {
namespace {

constexpr FormatName kFormat{.front = "viaduct-bench/", .version = 1, .writer = "viaduct bench"};
constexpr const char* kReading = "read result file";

}  // namespace

void describe(auto& json, base::Is<RunMember> auto& member) {
  json.need("rank", member.rank);
  json.keep("name", member.name);
  json.keep("role", member.role);
  json.need("host", member.host);
}

void describe(JsonWriter& to, const Environment& environment) {
  to.need("fingerprint", environment.fingerprint.empty() ? fingerprintOf(environment.members)
                                                         : environment.fingerprint);
  to.need("members", environment.members);
}

void describe(JsonReader& from, Environment& environment) {
  from.need("fingerprint", environment.fingerprint);
  from.need("members", environment.members);
}

void describe(auto& json, base::Is<Report> auto& report) {
  json.need("version", report.version);
  json.need("started", report.started);
  json.need("end", report.end);
  json.need("environment", report.environment);
  AllOptions options{report.settings, report.agent};
  json.need("settings", options);
  json.need("rows", report.rows);
  json.keep("conclusion", report.conclusion);
  json.may("command", report.command);
}

namespace {

Error notRead(const std::string& file, std::string detail, std::string remedy) {
  return {.code = Code::kUnsupported,
          .operation = kReading,
          .detail = std::move(detail),
          .file = file,
          .remedy = std::move(remedy)};
}

// Returns the program that writes a format of viaduct.
std::string_view writerOf(std::string_view format) {
  if (format.starts_with("viaduct-bench/")) return "viaduct bench";
  if (format.starts_with("viaduct-suite/")) return "viaduct suite";
  if (format.starts_with("viaduct-compare/")) return "viaduct compare";
  if (format.starts_with("viaduct-pipeline/")) return "viaduct bench --pipeline";
  if (format.starts_with("viaduct-swap/")) return "viaduct bench --scheme swap";
  if (format.starts_with("viaduct-gpu-matrix/")) return "viaduct bench --gpu-matrix";
  return {};
}

// Refuses other formats and versions, whose fields may differ.
Status checkFormat(const Json& json, const std::string& file, const FormatName& name) {
  const auto at = json.is_object() ? json.find("format") : json.end();
  const bool text = at != json.end() && at->is_string();
  const std::string format = text ? at->get<std::string>() : std::string{};
  const bool ours = format.starts_with(name.front);
  const auto version = base::parseCount(ours ? format.substr(name.front.size()) : "");
  const std::string wanted = fmt::format("give a file that `{} --json` wrote", name.writer);
  if (const std::string_view other = writerOf(format); !ours && !other.empty())
    return notRead(file, fmt::format("this is a file of `{}`", other), wanted);
  if (!version)
    return notRead(
        file, fmt::format("this JSON is not a result file: its \"format\" is not {}N", name.front),
        wanted);
  if (*version != name.version)
    return notRead(file,
                   fmt::format("written by a newer viaduct: {}; this one reads up to {}", format,
                               name.version),
                   "read it with that viaduct");
  return Ok{};
}

}  // namespace

bool hasFormat(std::string_view text, const FormatName& format) {
  const auto json = parseJson(text);
  if (!json || !json->is_object()) return false;
  const auto at = json->find("format");
  return at != json->end() && at->is_string() && at->get<std::string>().starts_with(format.front);
}

Result<Json> parseFile(std::string_view text, const std::string& file, const char* reading,
                       const FormatName& name) {
  auto json = parseJson(text);
  if (!json) {
    Error error = std::move(json).error();
    error.operation = reading;
    error.file = file;
    return error;
  }
  VIADUCT_CHECK(checkFormat(*json, file, name));
  return json;
}

std::string fileText(const FormatName& format, const Json& content) {
  Json out{{"format", fmt::format("{}{}", format.front, format.version)}};
  out.update(content);
  return dumpJson(out, 2) + "\n";
}

std::string toJson(const Report& report) { return fileText(kFormat, JsonWriter::of(report)); }

Result<Report> reportFromJson(std::string_view text, const std::string& name) {
  VIADUCT_TRY(const Json json, parseFile(text, name, kReading, kFormat));
  JsonReader from(json);
  Report report;
  describe(from, report);
  VIADUCT_CHECK(from.status(kReading, name));
  return report;
}

}  // namespace viaduct::measure
