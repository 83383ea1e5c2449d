// Traces of requests to a language model. Threads: plain values and pure functions.
#pragma once

#include <cstdint>
#include <vector>

#include "base/words.h"

namespace viaduct::measure {

// The format of a trace's file. docs/kv-trace.md lists the formats.
enum class TraceFormat : std::uint8_t { kMooncake, kBailian, kAzure, kBurstGpt };
inline constexpr base::Words<TraceFormat, 4> kTraceFormats{{{"mooncake", TraceFormat::kMooncake},
                                                            {"bailian", TraceFormat::kBailian},
                                                            {"azure", TraceFormat::kAzure},
                                                            {"burstgpt", TraceFormat::kBurstGpt}}};
constexpr const char* traceFormatName(TraceFormat format) {
  return base::wordOf(kTraceFormats, format);
}

inline constexpr std::uint32_t kHashTokens = 512;  // tokens of a hash id in Mooncake's traces

struct TraceRequest {
  std::uint64_t time_us = 0;                          // since the trace's own time 0
  std::uint32_t input_length = 0, output_length = 0;  // tokens
  // Two requests whose first n ids are equal begin with the same tokens. Tokens after the last id
  // are shared with no other request.
  std::vector<std::uint64_t> hash_ids = {};
  friend bool operator==(const TraceRequest&, const TraceRequest&) = default;
};

struct Trace {
  TraceFormat format = TraceFormat::kMooncake;
  std::uint32_t id_tokens = kHashTokens;    // tokens of a hash id; 0: the trace has no ids
  std::vector<TraceRequest> requests = {};  // in the order of their times
  friend bool operator==(const Trace&, const Trace&) = default;
};
// Returns a digest. Members compare their digests before a replay, to find different traces.
std::uint64_t traceDigest(const Trace& trace);
// Returns the seconds between the first and the last request.
double secondsOf(const Trace& trace);

struct TraceStatistics {
  std::uint64_t requests = 0;
  double seconds = 0, requests_per_s = 0;
  double input_mean = 0, input_p50 = 0, input_p90 = 0, input_p99 = 0, input_max = 0;
  double output_mean = 0;
  std::uint64_t hash_ids = 0, unique = 0;
  double prefix_hits = 0;  // the part of the hash ids that an unbounded cache hits
};
TraceStatistics statisticsOf(const Trace& trace);

}  // namespace viaduct::measure
