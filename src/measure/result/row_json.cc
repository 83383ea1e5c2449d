#include "measure/result/row_json.h"

namespace viaduct::measure {
namespace {

constexpr base::Words<OpKind, 2> kOps{{{"write", OpKind::kWrite}, {"read", OpKind::kRead}}};

}  // namespace

// The JSON reader and writer find the describe() functions below by argument-dependent lookup, so
// these stay outside of the unnamed namespace.
void describe(auto& json, base::Is<Latency> auto& l) {
  json.need("mean", l.mean);
  json.need("p50", l.p50);
  json.need("p99", l.p99);
  json.need("p99_9", l.p99_9);
  json.need("max", l.max);
  json.may("min", l.min);
  json.may("p90", l.p90);
  json.may("p95", l.p95);
}

void describe(auto& json, base::Is<TimedBytes> auto& moved) {
  json.need("bytes", moved.bytes);
  json.need("seconds", moved.seconds);
}

void describe(auto& json, base::Is<Distribution> auto& values) {
  json.need("sum", values.sum);
  json.need("min", values.min);
  json.need("max", values.max);
  json.need("buckets", values.buckets);
}

void describe(auto& json, base::Is<RepeatCounts> auto& repeat) {
  json.need("bytes", repeat.whole.bytes);
  json.need("seconds", repeat.whole.seconds);
  json.need("parts", repeat.parts);
}

void describe(auto& json, base::Is<MemberCounts> auto& member) {
  json.need("initiator", member.initiator);
  json.may("host", member.host);
  json.need("in_process", member.in_process);
  json.may("timed", member.timed);
  json.may("timed_bytes", member.timed_bytes);
  json.may("transfers", member.transfers);
  json.may("bytes", member.bytes);
  json.may("background", member.background);
  json.may("background_gb_per_s", member.background_gb_per_s);
  json.may("background_gap_s", member.background_gap_s);
  json.may("checks", member.checks);
  json.may("missed", member.missed);
  json.may("wrong", member.wrong);
  json.may("ops", member.ops);
  json.may("words", member.words);
  json.may("cpu_s", member.cpu_s);
  json.may("counted_s", member.counted_s);
  json.may("sealing_s", member.sealing_s);
  json.may("machine_cpu_s", member.machine_cpu_s);
  json.may("machine_idle_s", member.machine_idle_s);
  json.may("processors", member.processors);
  json.may("clock_s", member.clock_s);
  json.may("second_clock_s", member.second_clock_s);
}

void describe(auto& json, base::Is<DeviceCounts> auto& device) {
  json.need("host", device.host);
  json.need("device", device.device);
  json.may("sent", device.sent);
  json.may("received", device.received);
  json.may("sent_by_others", device.sent_by_others);
  json.may("received_by_others", device.received_by_others);
}

void describe(auto& json, base::Is<CountedPayload> auto& one) {
  json.need("host", one.host);
  json.need("devices", one.devices);
  json.need("sent", one.sent);
  json.need("counted", one.counted);
  json.may("others", one.others);
  json.need("payload", one.payload);
}

void describe(auto& json, base::Is<RowCounts> auto& counts) {
  json.need("streams", counts.streams);
  json.may("echo", counts.echo);
  json.may("all_checked", counts.all_checked);
  json.may("checking_s", counts.checking_s);
  json.need("repeats", counts.repeats);
  json.may("alone", counts.alone);
  json.need("members", counts.members);
  json.may("latency_ns", counts.latency_ns);
  json.may("prep_ns", counts.prep_ns);
  json.may("post_ns", counts.post_ns);
  json.may("tx_ns", counts.tx_ns);
  json.may("devices", counts.devices);
  json.may("payload", counts.payload);
}

void describe(auto& json, base::Is<MeanP99> auto& m) {
  json.need("mean", m.mean);
  json.need("p99", m.p99);
}

void describe(auto& json, base::Is<CpuSeconds> auto& c) {
  json.need("initiators", c.initiators);
  json.need("targets", c.targets);
}

void describe(auto& json, base::Is<BackgroundTraffic> auto& traffic) {
  json.need("size", traffic.size);
  json.need("gb_per_s", traffic.gb_per_s);
  json.need("longest_gap_ms", traffic.longest_gap_ms);
}

void describe(auto& json, base::Is<OpenLoop> auto& rate) {
  json.need("asked_per_s", rate.asked_per_s);
  json.need("reached_per_s", rate.reached_per_s);
  json.need("arrivals", rate.arrivals);
}

void describe(auto& json, base::Is<Ceiling> auto& ceiling) {
  json.need("name", ceiling.name);
  json.need("gb_per_s", ceiling.gb_per_s);
  json.need("percent", ceiling.percent);
}

void describe(auto& json, base::Is<SlowCause> auto& cause) {
  json.need("name", cause.name);
  json.need("what", cause.what);
  json.need("remedy", cause.remedy);
}

void describe(auto& json, base::Is<Checks> auto& checks) {
  json.need("transfers", checks.transfers);
  json.need("smallest_caught", checks.smallest_caught);
  json.keep("seconds", checks.seconds);
}

void describe(auto& json, base::Is<ProvenShare> auto& share) {
  json.need("backend", share.backend);
  json.need("way", share.way);
  json.need("device", share.device);
  json.need("bytes", share.bytes);
  json.need("ops", share.ops);
  json.word("proven", share.proven, kProvens);
  json.may("injected", share.injected);
  json.may("batches", share.batches);
  json.may("stage", share.stage);
  json.may("by_kernel", share.by_kernel);
}

void describe(auto& json, base::Is<PairResult> auto& pair) {
  json.need("initiator", pair.initiator);
  json.need("target", pair.target);
  json.may("gb_per_s", pair.gb_per_s);
  json.may("latency_us", pair.latency_us);
  json.may("repeats", pair.repeats);
}

void describe(auto& json, base::Is<DeviceResult> auto& device) {
  json.need("side", device.side);
  json.need("number", device.number);
  json.need("gpu", device.gpu);
  json.need("gb_per_s", device.gb_per_s);
  json.may("repeats", device.repeats);
}

void describe(auto& json, base::Is<Scaling> auto& scaling) {
  json.need("devices", scaling.devices);
  json.may("alone_gb_per_s", scaling.alone_gb_per_s);
  json.may("of_linear", scaling.of_linear);
  json.need("slowest_of_fastest", scaling.slowest_of_fastest);
}

void describe(auto& json, base::Is<Operation> auto& operation) {
  json.need("size", operation.size);
  json.may("time_us", operation.time_us);
  json.may("algbw", operation.algbw);
  json.may("busbw", operation.busbw);
  json.may("wrong", operation.wrong);
  json.may("moved_bytes", operation.moved_bytes);
  json.may("busiest_bytes", operation.busiest_bytes);
}

void describe(auto& json, base::Is<KvReplayed> auto& replay) {
  json.need("trace", replay.trace);
  json.may("format", replay.format);
  json.need("speed", replay.speed);
  json.need("requests", replay.requests);
  json.need("left_out", replay.left_out);
  json.need("hash_ids", replay.hash_ids);
  json.need("hit_ids", replay.hit_ids);
  json.need("hit_rate", replay.hit_rate);
  json.need("tokens", replay.tokens);
  json.need("hit_tokens", replay.hit_tokens);
  json.may("prefill_tokens_per_s", replay.prefill_tokens_per_s);
  json.may("ttft_us", replay.ttft_us);
  json.may("of_ttft", replay.of_ttft);
  json.may("of_ttft_p99", replay.of_ttft_p99);
  json.may("ttft_ns", replay.ttft_ns);
  json.may("of_ttft_millionths", replay.of_ttft_millionths);
}

void describe(auto& json, base::Is<KvWorkload> auto& kv) {
  json.need("model", kv.model);
  json.need("tokens", kv.tokens);
  json.may("source_block", kv.source_block);
  json.may("destination_block", kv.destination_block);
  json.need("source_tp", kv.source_tp);
  json.need("destination_tp", kv.destination_tp);
  json.need("order", kv.order);
  json.need("arrangement", kv.arrangement);
  json.need("bulk", kv.bulk);
  json.need("trial", kv.trial);
  json.need("trials", kv.trials);
  json.need("table_sets", kv.table_sets);
  json.need("pool_bytes", kv.pool_bytes);
  json.need("descriptors", kv.descriptors);
  json.need("runs", kv.runs);
  json.need("checked_words", kv.checked_words);
  json.may("of_bulk", kv.of_bulk);
}

void describe(auto& json, base::Is<BusyTime> auto& worked) {
  json.need("seconds", worked.seconds);
  json.need("of_seconds", worked.of_seconds);
}

void describe(auto& json, base::Is<StageResult> auto& stage) {
  json.need("name", stage.name);
  json.need("route", stage.route);
  json.need("path", stage.path);
  json.need("gb_per_s", stage.gb_per_s);
  json.need("busy", stage.busy);
  json.may("moved", stage.moved);
  json.may("worked", stage.worked);
}

void describe(auto& json, base::Is<PipelineRow> auto& row) {
  json.need("pipeline", row.pipeline);
  json.word("run", row.run, kStagesRuns);
  json.need("rows", row.rows);
  json.need("stages", row.stages);
}

void describe(auto& json, base::Is<SwapRow> auto& row) {
  json.need("direction", row.direction);
  json.need("order", row.order);
  json.need("way", row.way);
  json.need("gpu", row.gpu);
  json.need("guard_bytes", row.guard_bytes);
}

void describe(auto& json, base::Is<MatrixRow> auto& row) {
  json.need("from", row.from);
  json.need("to", row.to);
  json.need("processes", row.processes);
  json.need("figure", row.figure);
  json.need("way", row.way);
}

void describe(auto& json, base::Is<RateInterval> auto& interval) {
  json.need("start_s", interval.start);
  json.need("end_s", interval.end);
  json.need("gb_per_s", interval.gb_per_s);
  json.may("bytes", interval.bytes);
}

void describe(auto& json, base::Is<Interrupted> auto& interrupted) {
  json.may("of_seconds", interrupted.of_seconds);
  json.may("of_transfers", interrupted.of_transfers);
}

namespace {

template <class Kind>
void describeKind(JsonWriter& to, const char* name, const Row& row) {
  if (const auto* const kind = row.as<Kind>()) to.need(name, *kind);
}

template <class Kind>
void describeKind(JsonReader& from, const char* name, Row& row) {
  std::optional<Kind> kind;
  from.may(name, kind);
  if (kind) row.kind = *std::move(kind);
}

void describeFigures(auto& json, auto& row) {
  json.need("iterations", row.iterations);
  json.keep("seconds", row.seconds);
  json.may("gb_per_s", row.gb_per_s);
  json.may("gb_per_s_parts", row.gb_per_s_parts);
  json.may("gb_per_s_spread", row.gb_per_s_spread);
  json.may("latency_us", row.latency_us);
  json.may("prep_us", row.prep_us);
  json.may("post_us", row.post_us);
  json.may("tx_us", row.tx_us);
  json.may("cpu_s_per_gb", row.cpu_s_per_gb);
  json.may("cpu_s", row.cpu_s);
  json.may("cores_busy", row.cores_busy);
  json.may("cores_others", row.cores_others);
  json.may("completions_per_s", row.completions_per_s);
  json.may("rate", row.rate);
  json.may("background", row.background);
  json.may("pairs", row.pairs);
  json.may("devices", row.devices);
  json.may("scaling", row.scaling);
  describeKind<Operation>(json, "operation", row);
  describeKind<KvWorkload>(json, "kv", row);
  if (auto* const kv = row.template as<KvWorkload>()) json.may("replay", kv->replay);
  describeKind<PipelineRow>(json, "pipeline", row);
  describeKind<SwapRow>(json, "swap", row);
  describeKind<MatrixRow>(json, "matrix", row);
  json.may("intervals", row.intervals);
  json.may("interrupted", row.interrupted);
}

void describeRow(auto& json, auto& row) {
  json.may("run", row.run);
  json.need("backend", row.backend);
  json.word("op", row.op, kOps);
  json.need("scheme", row.scheme);
  json.need("block_size", row.block_size);
  json.need("batch_size", row.batch_size);
  json.keep("threads", row.threads);
  json.keep("pipeline_depth", row.pipeline_depth);
  json.keep("initiators", row.initiators);
  json.keep("targets", row.targets);
  json.keep("bidirectional", row.bidirectional);
  json.may("memory", row.memory);
  json.may("copied_by", row.copied_by);
  json.may("heat", row.heat);
  describeFigures(json, row);
  json.may("transfers", row.transfers);
  json.need("path", row.path);
  json.may("proof", row.proof);
  json.may("ceiling", row.ceiling);
  json.may("ceiling_unknown", row.ceiling_unknown);
  json.word("verified", row.verified, kVerifieds);
  json.may("checks", row.checks);
  json.word("verdict", row.verdict, kVerdicts);
  json.may("why", row.why);
  json.may("remark", row.remark);
  json.may("causes", row.causes);
  json.may("counts", row.counts);
}

}  // namespace

void describe(JsonWriter& to, const Row& row) { describeRow(to, row); }
void describe(JsonReader& from, Row& row) { describeRow(from, row); }

}  // namespace viaduct::measure
