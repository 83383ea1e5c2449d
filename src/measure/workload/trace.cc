#include "measure/workload/trace.h"

#include <algorithm>
#include <cstddef>
#include <unordered_set>

#include "base/splitmix.h"

namespace viaduct::measure {

std::uint64_t traceDigest(const Trace& trace) {
  std::uint64_t out = 0;
  const auto add = [&](std::uint64_t number) {
    out = base::splitmix(out + base::kSplitmixStep) ^ number;
  };
  add(trace.id_tokens);
  for (const TraceRequest& one : trace.requests) {
    add(one.time_us);
    add(one.input_length);
    add(one.output_length);
    add(one.hash_ids.size());
    for (const std::uint64_t id : one.hash_ids) add(id);
  }
  return base::splitmix(out);
}

double secondsOf(const Trace& trace) {
  if (trace.requests.empty()) return 0;
  return static_cast<double>(trace.requests.back().time_us - trace.requests.front().time_us) * 1e-6;
}

TraceStatistics statisticsOf(const Trace& trace) {
  TraceStatistics out{.requests = trace.requests.size(), .seconds = secondsOf(trace)};
  if (trace.requests.empty()) return out;
  std::vector<std::uint32_t> inputs;
  std::unordered_set<std::uint64_t> cached;
  std::uint64_t hits = 0;
  for (const TraceRequest& one : trace.requests) {
    inputs.push_back(one.input_length);
    out.input_mean += one.input_length;
    out.output_mean += one.output_length;
    bool prefix = true;
    for (const std::uint64_t id : one.hash_ids) {
      prefix = prefix && cached.contains(id);
      hits += prefix ? 1 : 0;
    }
    cached.insert(one.hash_ids.begin(), one.hash_ids.end());
    out.hash_ids += one.hash_ids.size();
  }
  const auto count = static_cast<double>(trace.requests.size());
  std::ranges::sort(inputs);
  const auto quantile = [&](double q) {
    return inputs[std::min(inputs.size() - 1, static_cast<std::size_t>(q * count))];
  };
  out.input_mean /= count;
  out.output_mean /= count;
  out.input_p50 = quantile(0.5);
  out.input_p90 = quantile(0.9);
  out.input_p99 = quantile(0.99);
  out.input_max = inputs.back();
  out.unique = cached.size();
  if (out.hash_ids != 0)
    out.prefix_hits = static_cast<double>(hits) / static_cast<double>(out.hash_ids);
  if (out.seconds > 0) out.requests_per_s = count / out.seconds;
  return out;
}

}  // namespace viaduct::measure
