#include "measure/workload/trace_format.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <array>
#include <cstddef>
#include <utility>
#include <vector>

#include "measure/workload/date_time.h"

namespace viaduct::measure {
namespace {

constexpr std::uint64_t kMostLength = std::uint64_t{1} << 24U;  // tokens
constexpr double kMillisecond = 1e3, kSecond = 1e6;             // microseconds
constexpr std::uint64_t kThousand = 1000, kMillion = 1'000'000;
// The date at which generated traces start, if their format has dates: 2024-01-01.
constexpr std::uint64_t kFirstDate = 1'704'067'200 * kMillion;

constexpr std::array kMooncakeNames{"input_length"};
constexpr std::array kBailianNames{"chat_id", "timestamp", "input_length"};
constexpr std::array kAzureNames{"TIMESTAMP", "ContextTokens", "GeneratedTokens"};
constexpr std::array kBurstGptNames{"Timestamp", "Request tokens", "Response tokens"};

Status readLengths(const TraceFields& fields, const char* input, const char* output,
                   TraceRequest& into) {
  VIADUCT_TRY(const auto in, fields.whole(input, kMostLength));
  into.input_length = static_cast<std::uint32_t>(in);
  if (!fields.has(output)) return Ok{};
  VIADUCT_TRY(const auto out, fields.whole(output, kMostLength));
  into.output_length = static_cast<std::uint32_t>(out);
  return Ok{};
}

Status readIds(const TraceFields& fields, TraceRequest& into) {
  if (!fields.has("hash_ids")) return Ok{};
  VIADUCT_TRY(into.hash_ids, fields.list("hash_ids"));
  return Ok{};
}

// Reads a line of Mooncake's format. Other tools leave out the output length and the ids, and write
// a delay instead of a time.
Result<TraceLine> readMooncake(const TraceFields& fields) {
  TraceLine out;
  if (fields.has("session_id")) out.session = fields.identity("session_id");
  if (fields.has("delay") && !fields.has("timestamp")) {
    VIADUCT_TRY(out.delay_us, fields.time("delay", kMillisecond));
  } else {
    VIADUCT_TRY(out.request.time_us, fields.time("timestamp", kMillisecond));
  }
  VIADUCT_CHECK(readLengths(fields, "input_length", "output_length", out.request));
  VIADUCT_CHECK(readIds(fields, out.request));
  return out;
}

Result<TraceLine> readBailian(const TraceFields& fields) {
  TraceLine out;
  VIADUCT_TRY(out.request.time_us, fields.time("timestamp", kSecond));
  VIADUCT_CHECK(readLengths(fields, "input_length", "output_length", out.request));
  VIADUCT_CHECK(readIds(fields, out.request));
  return out;
}

Result<TraceLine> readAzure(const TraceFields& fields) {
  TraceLine out;
  VIADUCT_TRY(out.request.time_us, fields.dateTime("TIMESTAMP"));
  VIADUCT_CHECK(readLengths(fields, "ContextTokens", "GeneratedTokens", out.request));
  return out;
}

Result<TraceLine> readBurstGpt(const TraceFields& fields) {
  TraceLine out;
  VIADUCT_TRY(out.request.time_us, fields.time("Timestamp", kSecond));
  VIADUCT_CHECK(readLengths(fields, "Request tokens", "Response tokens", out.request));
  out.failed = out.request.output_length == 0;
  return out;
}

// Returns a decimal number of units, without zeros at the end of its fraction.
std::string decimal(std::uint64_t microseconds, std::uint64_t unit) {
  if (microseconds % unit == 0) return fmt::to_string(microseconds / unit);
  const int digits = unit == kMillion ? 6 : 3;
  return fmt::format("{}.{:0{}}", microseconds / unit, microseconds % unit, digits);
}

std::string noHead() { return {}; }

std::string writeMooncake(const TraceRequest& r, std::size_t /*number*/) {
  return fmt::format(
      R"({{"timestamp": {}, "input_length": {}, "output_length": {}, "hash_ids": [{}]}})",
      decimal(r.time_us, kThousand), r.input_length, r.output_length, fmt::join(r.hash_ids, ", "));
}

std::string writeBailian(const TraceRequest& r, std::size_t number) {
  return fmt::format(
      R"({{"chat_id": {}, "parent_chat_id": -1, "timestamp": {}, "input_length": {}, )"
      R"("output_length": {}, "type": "text", "turn": 1, "hash_ids": [{}]}})",
      number, decimal(r.time_us, kMillion), r.input_length, r.output_length,
      fmt::join(r.hash_ids, ", "));
}

std::string headAzure() { return "TIMESTAMP,ContextTokens,GeneratedTokens\n"; }
std::string writeAzure(const TraceRequest& r, std::size_t /*number*/) {
  return fmt::format("{},{},{}", dateTimeText(r.time_us), r.input_length, r.output_length);
}

std::string headBurstGpt() {
  return "Timestamp,Model,Request tokens,Response tokens,Total tokens,Log Type\n";
}
std::string writeBurstGpt(const TraceRequest& r, std::size_t /*number*/) {
  return fmt::format("{},GPT-4,{},{},{},API log", decimal(r.time_us, kMillion), r.input_length,
                     r.output_length, std::uint64_t{r.input_length} + r.output_length);
}

// The order matters: a format whose lines have all names of another format comes before that one.
constexpr std::array kFormats{
    TraceFormatFacts{TraceFormat::kBailian, "Alibaba Bailian", false, 16, kBailianNames,
                     readBailian, noHead, writeBailian},
    TraceFormatFacts{TraceFormat::kMooncake, "Mooncake", false, kHashTokens, kMooncakeNames,
                     readMooncake, noHead, writeMooncake},
    TraceFormatFacts{TraceFormat::kAzure, "Azure", true, 0, kAzureNames, readAzure, headAzure,
                     writeAzure},
    TraceFormatFacts{TraceFormat::kBurstGpt, "BurstGPT", true, 0, kBurstGptNames, readBurstGpt,
                     headBurstGpt, writeBurstGpt},
};

// Replaces each id by `pieces` ids of `piece_tokens` tokens each.
std::vector<std::uint64_t> splitIds(const TraceRequest& request, std::uint64_t pieces,
                                    std::uint32_t piece_tokens) {
  std::vector<std::uint64_t> out;
  const std::size_t most = (request.input_length + piece_tokens - 1) / piece_tokens;
  for (const std::uint64_t id : request.hash_ids)
    for (std::uint64_t i = 0; i < pieces && out.size() < most; ++i) out.push_back(id * pieces + i);
  return out;
}

}  // namespace

std::span<const TraceFormatFacts> traceFormats() { return kFormats; }

const TraceFormatFacts& factsOf(TraceFormat format) {
  return *std::ranges::find(kFormats, format, &TraceFormatFacts::format);
}

std::string textOf(const Trace& trace) {
  const TraceFormatFacts& facts = factsOf(trace.format);
  std::string out = facts.head();
  for (std::size_t i = 0; i < trace.requests.size(); ++i) {
    out += facts.write(trace.requests[i], i);
    out += '\n';
  }
  return out;
}

Trace inFormat(Trace trace, TraceFormat format) {
  const std::uint32_t wanted = factsOf(format).id_tokens;
  for (TraceRequest& one : trace.requests) {
    if (wanted == 0)
      one.hash_ids.clear();
    else if (wanted < trace.id_tokens)
      one.hash_ids = splitIds(one, trace.id_tokens / wanted, wanted);
    if (format == TraceFormat::kAzure) one.time_us += kFirstDate;
  }
  trace.format = format;
  trace.id_tokens = wanted;
  return trace;
}

}  // namespace viaduct::measure
