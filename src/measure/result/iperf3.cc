#include <fmt/chrono.h>
#include <fmt/format.h>

#include <algorithm>
#include <ctime>
#include <utility>

#include "base/json.h"
#include "measure/result/baseline_log.h"

namespace viaduct::measure {

using base::Json;
using base::JsonReader;

namespace iperf3 {

// The fields of iperf3's JSON from which a row is made.
struct Start {
  std::string protocol = {}, version = {}, system = {};
  std::uint64_t time = 0, block = 0, seconds = 0;
  std::uint32_t streams = 1, reverse = 0, bidirectional = 0;
};
struct Sum {
  double seconds = 0, bits_per_s = 0;
};
struct Interval {
  Sum sum = {};
};
struct Cpu {
  double here = 0, there = 0;  // percent of one core
};
struct End {
  std::optional<Sum> received = {}, datagrams = {};
  std::optional<Cpu> cpu = {};
};
struct Output {
  Start start = {};
  std::vector<Interval> intervals = {};
  End end = {};
  std::optional<std::string> error = {};
};

struct TestStart {
  Start& into;
};
struct Timestamp {
  Start& into;
};

void describe(JsonReader& from, TestStart& test) {
  from.need("protocol", test.into.protocol);
  from.need("num_streams", test.into.streams);
  from.need("blksize", test.into.block);
  from.may("duration", test.into.seconds);
  from.may("reverse", test.into.reverse);
  from.may("bidir", test.into.bidirectional);
}
void describe(JsonReader& from, Timestamp& stamp) { from.may("timesecs", stamp.into.time); }
void describe(JsonReader& from, Start& start) {
  TestStart test{start};
  Timestamp stamp{start};
  from.need("version", start.version);
  from.may("system_info", start.system);
  from.may("timestamp", stamp);
  from.need("test_start", test);
}
void describe(JsonReader& from, Sum& sum) {
  from.need("seconds", sum.seconds);
  from.need("bits_per_second", sum.bits_per_s);
}
void describe(JsonReader& from, Interval& interval) { from.need("sum", interval.sum); }
void describe(JsonReader& from, Cpu& cpu) {
  from.need("host_total", cpu.here);
  from.need("remote_total", cpu.there);
}
void describe(JsonReader& from, End& end) {
  from.may("sum_received", end.received);
  from.may("sum", end.datagrams);
  from.may("cpu_utilization_percent", end.cpu);
}
void describe(JsonReader& from, Output& output) {
  from.may("error", output.error);
  if (output.error) return;
  from.need("start", output.start);
  from.need("intervals", output.intervals);
  from.need("end", output.end);
}

}  // namespace iperf3

namespace {

constexpr auto kReadingIperf3 = "read output of iperf3";

double gigabytes(const iperf3::Sum& sum) { return sum.bits_per_s / 8e9; }

Row rowOf(const iperf3::Output& output, const iperf3::Sum& sum) {
  Row row{.backend = output.start.protocol == "UDP" ? "iperf3-udp" : "iperf3",
          .op = output.start.reverse != 0 ? OpKind::kRead : OpKind::kWrite,
          .block_size = output.start.block,
          .threads = output.start.streams,
          .bidirectional = output.start.bidirectional != 0,
          .memory = "DRAM",
          .seconds = sum.seconds,
          .gb_per_s = gigabytes(sum),
          .verdict = Verdict::kUnproven,
          .why = "the tool does not check the path of the bytes"};
  for (const iperf3::Interval& one : output.intervals)
    row.gb_per_s_parts.push_back(gigabytes(one.sum));
  if (const auto& cpu = output.end.cpu; cpu && gigabytes(sum) > 0) {
    row.cpu_s = CpuSeconds{.initiators = cpu->here / 100 * sum.seconds,
                           .targets = cpu->there / 100 * sum.seconds};
    row.cpu_s_per_gb =
        (row.cpu_s->initiators + row.cpu_s->targets) / (gigabytes(sum) * sum.seconds);
  }
  return row;
}

}  // namespace

bool isIperf3(std::string_view text) {
  const auto json = base::parseJson(text);
  if (!json || !json->is_object()) return false;
  const auto start = json->find("start");
  return start != json->end() && start->is_object() && start->contains("version") &&
         (*start)["version"].is_string() &&
         (*start)["version"].get<std::string>().starts_with("iperf 3");
}

Result<Report> reportFromIperf3(std::string_view text, const std::string& name) {
  VIADUCT_TRY(const Json json, base::parseJson(text));
  iperf3::Output output;
  JsonReader reader(json);
  describe(reader, output);
  VIADUCT_CHECK(reader.status(kReadingIperf3, name));
  const auto fail = [&](std::string detail) {
    return Error{.code = Code::kProtocol,
                 .operation = kReadingIperf3,
                 .detail = std::move(detail),
                 .file = name};
  };
  if (output.error) return fail("iperf3 failed: " + *output.error);
  const auto sum = output.end.received ? output.end.received : output.end.datagrams;
  if (!sum || output.start.block == 0) return fail("the run has no result: it was cut off");
  Report out{.version = output.start.version};
  if (output.start.time != 0)
    out.started = fmt::format("{:%Y-%m-%dT%H:%M:%SZ}",
                              fmt::gmtime(static_cast<std::time_t>(output.start.time)));
  if (const auto done = output.intervals.size(); done < output.start.seconds)
    out.end = fmt::format("iperf3 ended after {} of {} s", done, output.start.seconds);
  if (!output.start.system.empty()) out.settings.push_back({"system", output.start.system});
  out.rows = {rowOf(output, *sum)};
  out.conclusion = {
      "Read from the output of iperf3. Its rate is that of the receiver; its block is one write to "
      "a "
      "socket."};
  return out;
}

}  // namespace viaduct::measure
