#include "measure/result/report_json.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>

#include "measure/result/report.h"
#include "measure/result/row_json.h"

// The JSON reader and writer find the describe() functions below by argument-dependent lookup.
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
  json.keep("kernel_started", facts.kernel_started);
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
  json.may("version", member.build.version);
  json.may("commit", member.build.commit);
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

// A file format of viaduct, and the command that writes it.
struct KnownFormat {
  std::string_view front, writer;
  bool old = false;  // no command writes it any more
};
constexpr std::array kKnownFormats{
    KnownFormat{"viaduct-bench/", "viaduct bench"},
    KnownFormat{"viaduct-suite/", "viaduct suite"},
    KnownFormat{"viaduct-compare/", "viaduct compare"},
    KnownFormat{"viaduct-explain/", "viaduct bench --explain"},
    KnownFormat{"viaduct-doctor/", "viaduct doctor"},
    KnownFormat{"viaduct-validate/", "viaduct validate --json"},
    KnownFormat{"viaduct-pipeline/", "viaduct pipeline", true},
    KnownFormat{"viaduct-swap/", "viaduct swap", true},
    KnownFormat{"viaduct-gpu-matrix/", "viaduct matrix", true},
};

std::string formatOf(const Json& json) {
  const auto at = json.is_object() ? json.find("format") : json.end();
  return at != json.end() && at->is_string() ? at->get<std::string>() : std::string{};
}

Error otherFormat(const std::string& file, const std::string& format, const FormatName& wanted) {
  const std::string give = fmt::format("give a file that `{} --json` wrote", wanted.writer);
  const auto known = std::ranges::find_if(
      kKnownFormats, [&](const KnownFormat& one) { return format.starts_with(one.front); });
  if (known == kKnownFormats.end())
    return notRead(
        file,
        fmt::format("this JSON is not a result file: its \"format\" is not {}N", wanted.front),
        give);
  if (known->old)
    return notRead(
        file, fmt::format("an older viaduct wrote it: its format is {}", format),
        fmt::format("read it with that viaduct, or measure again with `{} --json`", known->writer));
  return notRead(
      file, fmt::format("this is a file of `{}`: its format is {}", known->writer, format), give);
}

// Refuses a file of another format or version, because its fields may differ.
Status checkFormat(const Json& json, const std::string& file, const FormatName& wanted) {
  const std::string format = formatOf(json);
  if (!format.starts_with(wanted.front)) return otherFormat(file, format, wanted);
  const std::string ours = wanted.text();
  if (format == ours) return Ok{};
  return notRead(
      file,
      fmt::format("another viaduct wrote it: its format is {}, and this one reads {}", format,
                  ours),
      fmt::format("read it with that viaduct, or measure again with `{} --json`", wanted.writer));
}

}  // namespace

bool hasFormat(std::string_view text, const FormatName& format) {
  return formatIn(text).starts_with(format.front);
}

std::string formatIn(std::string_view text) {
  const auto json = parseJson(text);
  return json ? formatOf(*json) : std::string{};
}

std::string FormatName::text() const { return fmt::format("{}{}", front, version); }

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
  Json out{{"format", format.text()}};
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
