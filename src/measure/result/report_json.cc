#include "measure/result/report_json.h"

#include <fmt/format.h>

#include "base/sizes.h"
#include "measure/result/report.h"
#include "measure/result/row_json.h"

// Where the reader looks for them.
namespace viaduct::host {

static void read(base::JsonReader& from, Interface& i) {
  from.need("name", i.name);
  from.may("up", i.up);
  from.may("addresses", i.addresses);
  from.may("mbit_per_s", i.mbit_per_s);
}

static void read(base::JsonReader& from, Facts& facts) {
  from.need("hostname", facts.hostname);
  from.may("boot_id", facts.boot_id);
  from.may("kernel", facts.kernel);
  from.may("cpu_model", facts.cpu_model);
  from.may("cores", facts.cores);
  from.may("memory_bytes", facts.memory);
  from.may("interfaces", facts.interfaces);
}

}  // namespace viaduct::host

namespace viaduct::measure {
namespace {

constexpr FormatName kFormat{.front = "viaduct-bench/", .version = 2, .writer = "viaduct bench"};
constexpr const char* kReading = "read result file";

// --- writing

Json asJson(const host::Facts& facts) {
  Json interfaces = Json::array();
  for (const host::Interface& i : facts.interfaces) {
    Json one{{"name", i.name}, {"up", i.up}, {"addresses", i.addresses}};
    if (i.mbit_per_s != 0) one["mbit_per_s"] = i.mbit_per_s;
    interfaces.push_back(std::move(one));
  }
  return {{"hostname", facts.hostname},
          {"boot_id", facts.boot_id},
          {"kernel", facts.kernel},
          {"cpu_model", facts.cpu_model},
          {"cores", facts.cores},
          {"memory_bytes", facts.memory},
          {"interfaces", std::move(interfaces)}};
}

}  // namespace

Json asJson(const Environment& environment) {
  Json members = Json::array();
  for (const Member& m : environment.members)
    members.push_back(
        Json{{"rank", m.rank}, {"name", m.name}, {"role", m.role}, {"host", asJson(m.host)}});
  return {{"fingerprint", environment.fingerprint.empty() ? fingerprintOf(environment.members)
                                                          : environment.fingerprint},
          {"members", std::move(members)}};
}

Json asJson(const std::vector<Option>& options) {
  Json out = Json::object();
  for (const Option& option : options) out[option.name] = option.value;
  return out;
}

// --- reading: JsonReader finds these by their arguments, hence outside of the nameless namespace

void read(JsonReader& from, Member& member) {
  from.need("rank", member.rank);
  from.may("name", member.name);
  from.may("role", member.role);
  from.need("host", member.host);
}

void read(JsonReader& from, Environment& environment) {
  from.need("fingerprint", environment.fingerprint);
  from.need("members", environment.members);
}

struct AllOptions {
  OptionList run, agent;
};

void read(JsonReader& from, OptionList& options) {
  from.eachPlain([&](const std::string& name, std::string value) {
    options.list.push_back({name, std::move(value)});
  });
}

void read(JsonReader& from, AllOptions& options) {
  read(from, options.run);
  from.may("agent", options.agent);
}

namespace {

Error notRead(const std::string& file, std::string detail, std::string remedy) {
  return {.code = Code::kUnsupported,
          .operation = kReading,
          .detail = std::move(detail),
          .file = file,
          .remedy = std::move(remedy)};
}

// What else viaduct writes.
std::string_view writerOf(std::string_view format) {
  if (format.starts_with("viaduct-bench/")) return "viaduct bench";
  if (format.starts_with("viaduct-suite/")) return "viaduct suite";
  if (format.starts_with("viaduct-compare/")) return "viaduct compare";
  return {};
}

// Another version may have other fields.
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
  if (*version > name.version)
    return notRead(file,
                   fmt::format("written by a newer viaduct: {}; this one reads up to {}", format,
                               name.version),
                   "read it with that viaduct");
  if (*version < name.version)
    return notRead(
        file,
        fmt::format("written by an older viaduct: {}; this one reads {}", format, name.version),
        "measure again");
  return Ok{};
}

}  // namespace

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

std::string textOf(const FormatName& name) { return fmt::format("{}{}", name.front, name.version); }

std::string toJson(const Report& report) {
  Json rows = Json::array();
  for (const Row& row : report.rows) rows.push_back(asJson(row));
  Json settings = asJson(report.settings);
  settings["agent"] = asJson(report.agent);
  Json out{{"format", textOf(kFormat)},
           {"version", report.version},
           {"started", report.started},
           {"end", report.end},
           {"environment", asJson(report.environment)},
           {"settings", std::move(settings)},
           {"rows", std::move(rows)},
           {"conclusion", report.conclusion}};
  if (!report.command.empty()) out["command"] = report.command;
  return dumpJson(out, 2) + "\n";
}

Result<Report> reportFromJson(std::string_view text, const std::string& name) {
  VIADUCT_TRY(const Json json, parseFile(text, name, kReading, kFormat));
  JsonReader from(json);
  Report report;
  from.need("version", report.version);
  from.need("started", report.started);
  from.need("end", report.end);
  from.may("command", report.command);
  from.need("environment", report.environment);
  AllOptions options;
  from.need("settings", options);
  report.settings = std::move(options.run.list);
  report.agent = std::move(options.agent.list);
  from.need("rows", report.rows);
  from.may("conclusion", report.conclusion);
  VIADUCT_CHECK(from.status(kReading, name));
  return report;
}

}  // namespace viaduct::measure
