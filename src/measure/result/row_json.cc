#include "measure/result/row_json.h"

#include <cmath>
#include <utility>

namespace viaduct::measure {
namespace {

std::optional<OpKind> opNamed(std::string_view name) {
  for (const OpKind op : {OpKind::kWrite, OpKind::kRead})
    if (name == opKindName(op)) return op;
  return std::nullopt;
}

// --- writing

void put(Json& out, const char* key, const std::optional<double>& figure) {
  if (figure && std::isfinite(*figure)) out[key] = *figure;
}

// A group of figures is there as a whole or not at all.
template <class... Named>
void putGroup(Json& out, const char* key, const Named&... named) {
  if ((std::isfinite(named.second) && ...)) out[key] = Json{{named.first, named.second}...};
}

void put(Json& out, const char* key, const std::optional<Latency>& l) {
  if (!l) return;
  using F = std::pair<const char*, double>;
  putGroup(out, key, F{"mean", l->mean}, F{"p50", l->p50}, F{"p99", l->p99}, F{"p99_9", l->p99_9},
           F{"max", l->max});
  if (!out.contains(key)) return;
  put(out[key], "p90", l->p90);
  put(out[key], "p95", l->p95);
}

void put(Json& out, const char* key, const std::optional<MeanP99>& m) {
  using F = std::pair<const char*, double>;
  if (m) putGroup(out, key, F{"mean", m->mean}, F{"p99", m->p99});
}

void put(Json& out, const char* key, const std::optional<CpuSeconds>& c) {
  using F = std::pair<const char*, double>;
  if (c) putGroup(out, key, F{"initiators", c->initiators}, F{"targets", c->targets});
}

void put(Json& out, const char* key, const std::string& text) {
  if (!text.empty()) out[key] = text;
}

Json asJson(const ProvenShare& s) {
  Json out{{"backend", s.backend}, {"way", s.way}, {"device", s.device},
           {"bytes", s.bytes},     {"ops", s.ops}, {"proven", provenName(s.proven)}};
  if (s.injected > 0) out["injected"] = s.injected;
  if (s.batches > 0) out["batches"] = s.batches;
  return out;
}

Json asJson(const PairResult& pair) {
  Json out{{"initiator", pair.initiator}, {"target", pair.target}};
  put(out, "gb_per_s", pair.gb_per_s);
  put(out, "latency_us", pair.latency_us);
  return out;
}

Json asJson(const RateInterval& interval) {
  return {{"start_s", interval.start}, {"end_s", interval.end}, {"gb_per_s", interval.gb_per_s}};
}

Json asJson(const Interrupted& interrupted) {
  if (interrupted.of_seconds > 0) return {{"of_seconds", interrupted.of_seconds}};
  return {{"of_transfers", interrupted.of_transfers}};
}

template <class T>
Json listOf(const std::vector<T>& items) {
  Json out = Json::array();
  for (const T& item : items) out.push_back(asJson(item));
  return out;
}

void putFigures(Json& out, const Row& row) {
  out["iterations"] = row.iterations;
  if (std::isfinite(row.seconds)) out["seconds"] = row.seconds;
  put(out, "gb_per_s", row.gb_per_s);
  Json parts = Json::array();
  for (const double part : row.gb_per_s_parts)
    if (std::isfinite(part)) parts.push_back(part);
  if (!parts.empty()) out["gb_per_s_parts"] = parts;
  put(out, "gb_per_s_spread", row.gb_per_s_spread);
  put(out, "latency_us", row.latency_us);
  put(out, "prep_us", row.prep_us);
  put(out, "post_us", row.post_us);
  put(out, "tx_us", row.tx_us);
  put(out, "cpu_s_per_gb", row.cpu_s_per_gb);
  put(out, "cpu_s", row.cpu_s);
  put(out, "cores_busy", row.cores_busy);
  put(out, "cores_others", row.cores_others);
  put(out, "completions_per_s", row.completions_per_s);
  if (row.rate)
    out["rate"] = Json{{"asked_per_s", row.rate->asked_per_s},
                       {"reached_per_s", row.rate->reached_per_s},
                       {"arrivals", row.rate->arrivals}};
  if (!row.pairs.empty()) out["pairs"] = listOf(row.pairs);
  if (!row.intervals.empty()) out["intervals"] = listOf(row.intervals);
  if (row.interrupted) out["interrupted"] = asJson(*row.interrupted);
}

}  // namespace

// --- reading: JsonReader finds these by their arguments, hence outside of the nameless namespace

void read(JsonReader& from, Latency& l) {
  from.need("mean", l.mean);
  from.need("p50", l.p50);
  from.may("p90", l.p90);
  from.may("p95", l.p95);
  from.need("p99", l.p99);
  from.need("p99_9", l.p99_9);
  from.need("max", l.max);
}

void read(JsonReader& from, MeanP99& m) {
  from.need("mean", m.mean);
  from.need("p99", m.p99);
}

void read(JsonReader& from, CpuSeconds& c) {
  from.need("initiators", c.initiators);
  from.need("targets", c.targets);
}

void read(JsonReader& from, OpenLoop& rate) {
  from.need("asked_per_s", rate.asked_per_s);
  from.need("reached_per_s", rate.reached_per_s);
  from.need("arrivals", rate.arrivals);
}

void read(JsonReader& from, Ceiling& ceiling) {
  from.need("name", ceiling.name);
  from.need("gb_per_s", ceiling.gb_per_s);
  from.need("percent", ceiling.percent);
}

void read(JsonReader& from, Checks& checks) {
  from.need("transfers", checks.transfers);
  from.need("smallest_caught", checks.smallest_caught);
}

void read(JsonReader& from, ProvenShare& share) {
  from.need("backend", share.backend);
  from.need("way", share.way);
  from.need("device", share.device);
  from.need("bytes", share.bytes);
  from.need("ops", share.ops);
  from.may("injected", share.injected);
  from.may("batches", share.batches);
  from.word("proven", share.proven, provenNamed, "yes, no, unproven");
}

void read(JsonReader& from, PairResult& pair) {
  from.need("initiator", pair.initiator);
  from.need("target", pair.target);
  from.may("gb_per_s", pair.gb_per_s);
  from.may("latency_us", pair.latency_us);
}

void read(JsonReader& from, RateInterval& interval) {
  from.need("start_s", interval.start);
  from.need("end_s", interval.end);
  from.need("gb_per_s", interval.gb_per_s);
}

void read(JsonReader& from, Interrupted& interrupted) {
  from.may("of_transfers", interrupted.of_transfers);
  from.may("of_seconds", interrupted.of_seconds);
}

namespace {

void readFigures(JsonReader& from, Row& row) {
  from.need("iterations", row.iterations);
  from.may("seconds", row.seconds);
  from.may("gb_per_s", row.gb_per_s);
  from.may("gb_per_s_parts", row.gb_per_s_parts);
  from.may("gb_per_s_spread", row.gb_per_s_spread);
  from.may("latency_us", row.latency_us);
  from.may("prep_us", row.prep_us);
  from.may("post_us", row.post_us);
  from.may("tx_us", row.tx_us);
  from.may("cpu_s_per_gb", row.cpu_s_per_gb);
  from.may("cpu_s", row.cpu_s);
  from.may("cores_busy", row.cores_busy);
  from.may("cores_others", row.cores_others);
  from.may("completions_per_s", row.completions_per_s);
  from.may("rate", row.rate);
  from.may("pairs", row.pairs);
  from.may("intervals", row.intervals);
  from.may("interrupted", row.interrupted);
}

}  // namespace

Json asJson(const Row& row) {
  Json out{{"backend", row.backend},
           {"op", opKindName(row.op)},
           {"scheme", row.scheme},
           {"block_size", row.block_size},
           {"batch_size", row.batch_size},
           {"threads", row.threads},
           {"pipeline_depth", row.pipeline_depth},
           {"initiators", row.initiators},
           {"targets", row.targets},
           {"bidirectional", row.bidirectional}};
  put(out, "memory", row.memory);
  put(out, "heat", row.heat);
  putFigures(out, row);
  if (row.transfers > 0) out["transfers"] = row.transfers;
  out["path"] = listOf(row.path);
  put(out, "proof", row.proof);
  if (row.ceiling && std::isfinite(row.ceiling->gb_per_s) && std::isfinite(row.ceiling->percent))
    out["ceiling"] = Json{{"name", row.ceiling->name},
                          {"gb_per_s", row.ceiling->gb_per_s},
                          {"percent", row.ceiling->percent}};
  out["verified"] = verifiedName(row.verified);
  if (row.checks)
    out["checks"] = Json{{"transfers", row.checks->transfers},
                         {"smallest_caught", row.checks->smallest_caught}};
  out["verdict"] = verdictName(row.verdict);
  put(out, "why", row.why);
  put(out, "remark", row.remark);
  return out;
}

void read(JsonReader& from, Row& row) {
  from.need("backend", row.backend);
  from.word("op", row.op, opNamed, "write, read");
  from.need("scheme", row.scheme);
  from.need("block_size", row.block_size);
  from.need("batch_size", row.batch_size);
  from.may("threads", row.threads);
  from.may("pipeline_depth", row.pipeline_depth);
  from.may("initiators", row.initiators);
  from.may("targets", row.targets);
  from.may("bidirectional", row.bidirectional);
  from.may("memory", row.memory);
  from.may("heat", row.heat);
  readFigures(from, row);
  from.may("transfers", row.transfers);
  from.need("path", row.path);
  from.may("proof", row.proof);
  from.may("ceiling", row.ceiling);
  from.word("verified", row.verified, verifiedNamed, "full, sampled, off");
  from.may("checks", row.checks);
  from.word("verdict", row.verdict, verdictNamed,
            "ok, invalid, fallback, silent-rail, not-required, corrupt, unproven, failed");
  from.may("why", row.why);
  from.may("remark", row.remark);
}

std::string toJson(const Row& row) { return base::dumpJson(asJson(row), -1); }

Result<Row> rowFromJson(std::string_view text) {
  VIADUCT_TRY(const Json json, base::parseJson(text));
  if (!json.is_object())
    return Error{.code = Code::kProtocol, .operation = "result row", .detail = "not a JSON object"};
  JsonReader from(json);
  Row row;
  read(from, row);
  VIADUCT_CHECK(from.status("result row", {}));
  return row;
}

}  // namespace viaduct::measure
