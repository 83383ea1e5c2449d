#include "measure/result/row.h"

#include <fmt/chrono.h>

#include <array>
#include <ctime>
#include <nlohmann/json.hpp>
#include <utility>

#include "base/sizes.h"

namespace viaduct::measure {
namespace {

using Json = nlohmann::ordered_json;

constexpr std::array kVerdicts{Verdict::kOk, Verdict::kCorrupt, Verdict::kFailed};

Json asJson(const Latency& l) {
  return {{"p50", l.p50}, {"p90", l.p90}, {"p99", l.p99}, {"p99_9", l.p99_9}, {"max", l.max}};
}

Json asJson(const Path& path) {
  Json out = Json::array();
  for (const PathShare& s : path.shares)
    out.push_back({{"backend", s.backend},
                   {"device", s.rail},
                   {"way", s.way},
                   {"bytes", s.bytes},
                   {"ops", s.ops}});
  return out;
}

Json asJson(const Row& row) {
  const Workload& w = row.workload;
  return {{"backend", w.backend},
          {"op", opKindName(w.op)},
          {"block_size", w.block_bytes},
          {"batch_size", w.batch},
          {"iterations", w.iterations},
          {"memory", memoryChoiceName(w.memory)},
          {"seed", w.seed},
          {"gb_per_s", row.gb_per_s},
          {"gb_per_s_spread", row.gb_spread},
          {"latency_us", asJson(row.latency_us)},
          {"cpu_s_per_gb", row.cpu_s_per_gb},
          {"completions_per_s", row.completions_per_s},
          {"path", asJson(row.path)},
          {"verified", row.verified},
          {"verdict", verdictName(row.verdict)},
          {"why", row.why}};
}

Workload workloadFrom(const Json& json) {
  const bool read = json.at("op") == opKindName(OpKind::kRead);
  const bool plain = json.at("memory") == memoryChoiceName(MemoryChoice::kMalloc);
  return {.backend = json.at("backend"),
          .op = read ? OpKind::kRead : OpKind::kWrite,
          .block_bytes = json.at("block_size"),
          .batch = json.at("batch_size"),
          .iterations = json.at("iterations"),
          .memory = plain ? MemoryChoice::kMalloc : MemoryChoice::kAllocate,
          .seed = json.at("seed")};
}

Row rowFrom(const Json& json) {
  Row row{.workload = workloadFrom(json),
          .gb_per_s = json.at("gb_per_s"),
          .gb_spread = json.at("gb_per_s_spread"),
          .cpu_s_per_gb = json.at("cpu_s_per_gb"),
          .completions_per_s = json.at("completions_per_s"),
          .verified = json.at("verified"),
          .why = json.at("why")};
  const Json& l = json.at("latency_us");
  row.latency_us = {l.at("p50"), l.at("p90"), l.at("p99"), l.at("p99_9"), l.at("max")};
  for (const Json& s : json.at("path"))
    row.path.shares.push_back(
        {s.at("backend"), s.at("way"), s.at("device"), s.at("bytes"), s.at("ops")});
  row.verdict = Verdict::kFailed;
  for (const Verdict v : kVerdicts)
    if (json.at("verdict") == verdictName(v)) row.verdict = v;
  return row;
}

Json asJson(const host::Facts& facts) {
  Json interfaces = Json::object();
  for (const host::Interface& i : facts.interfaces)
    interfaces[i.name] = {{"up", i.up}, {"addresses", i.addresses}};
  return {{"hostname", facts.hostname}, {"boot_id", facts.boot_id}, {"kernel", facts.kernel},
          {"cpu", facts.cpu_model},     {"cores", facts.cores},     {"memory_bytes", facts.memory},
          {"interfaces", interfaces}};
}

// The secret is left out: result files are passed around.
Json asJson(const Settings& s) {
  return {{"name", s.name},
          {"listen", s.listen},
          {"insecure", s.insecure},
          {"backends", s.backends},
          {"rails", s.rails},
          {"sockets", s.sockets},
          {"copy_threads", s.copy_threads},
          {"detect", base::formatDuration(s.detect)},
          {"deadline", base::formatDuration(s.deadline)},
          {"grace", base::formatDuration(s.grace)},
          {"spin", base::formatDuration(s.spin)},
          {"note_backlog", s.note_backlog},
          {"weather", s.weather}};
}

std::string dump(const Json& json, int indent) {
  // Names may hold bytes that are no UTF-8: those are replaced, not an exception.
  return json.dump(indent, ' ', false, Json::error_handler_t::replace);
}

}  // namespace

const char* verdictName(Verdict verdict) {
  switch (verdict) {
    case Verdict::kOk:
      return "ok";
    case Verdict::kCorrupt:
      return "corrupt";
    case Verdict::kFailed:
      return "failed";
  }
  return "?";
}

Report startReport(std::string version, const Settings& settings) {
  return {.version = std::move(version),
          .started = fmt::format("{:%FT%TZ}", fmt::gmtime(std::time(nullptr))),
          .host = host::facts(),
          .settings = settings};
}

std::string toJson(const Row& row) { return dump(asJson(row), -1); }

Result<Row> rowFromJson(std::string_view text) {
  try {
    return rowFrom(Json::parse(text));
  } catch (const Json::exception& e) {
    return Error{.code = Code::kProtocol, .operation = "result row", .detail = e.what()};
  }
}

std::string toJson(const Report& report) {
  Json rows = Json::array();
  for (const Row& row : report.rows) rows.push_back(asJson(row));
  Json environment = asJson(report.host);
  environment["viaduct"] = report.version;
  environment["started"] = report.started;
  return dump({{"format", "viaduct-bench/1"},
               {"environment", environment},
               {"settings", asJson(report.settings)},
               {"end", report.end},
               {"rows", rows}},
              2) +
         "\n";
}

}  // namespace viaduct::measure
