// Request traces in the format of Mooncake: one JSON object a line. Threads: plain values and pure
// functions; readTrace() reads a file.
#pragma once

#include <viaduct/result.h>

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace viaduct::measure {

inline constexpr std::uint32_t kHashTokens = 512;  // tokens that one hash id stands for

struct TraceRequest {
  std::uint64_t timestamp = 0;                        // milliseconds
  std::uint32_t input_length = 0, output_length = 0;  // tokens
  std::vector<std::uint64_t> hash_ids = {};           // equal ids: the same prefix block
  friend bool operator==(const TraceRequest&, const TraceRequest&) = default;
};
using Trace = std::vector<TraceRequest>;

// The error names the number of the first wrong line. Empty lines are skipped.
Result<Trace> parseTrace(std::string_view text, const std::string& name);
Result<Trace> readTrace(const std::string& file);
// Writes a trace that parseTrace() reads.
std::string textOf(const Trace& trace);

struct TraceStatistics {
  std::uint64_t requests = 0;
  double seconds = 0, requests_per_s = 0;
  double input_mean = 0, input_p50 = 0, input_p90 = 0, input_p99 = 0, input_max = 0;
  double output_mean = 0;
  std::uint64_t hash_ids = 0, unique = 0;
  double prefix_hits = 0;  // the part of the hash ids that an unbounded cache has
};
TraceStatistics statisticsOf(const Trace& trace);

}  // namespace viaduct::measure
