#include "measure/workload/replay_plan.h"

namespace viaduct::measure {

ReplayPlan planReplay(const Trace& trace, std::uint64_t blocks, std::uint32_t block_tokens,
                      double speed) {
  PrefixCache prefill(blocks, block_tokens);
  DecodeCache decode(blocks);
  ReplayPlan out;
  for (std::size_t i = 0; i < trace.size(); ++i) {
    const TraceRequest& request = trace[i];
    auto from = prefill.take(request);
    auto to = from ? decode.take(out.requests.size(), from->blocks.size()) : std::nullopt;
    if (!to) {
      ++out.left_out;
      continue;
    }
    const auto after_start = static_cast<double>(request.timestamp - trace.front().timestamp);
    out.requests.push_back({.number = i,
                            .due_s = after_start * 1e-3 / speed,
                            .tokens = request.input_length,
                            .hit_tokens = static_cast<std::uint32_t>(from->hit_tokens),
                            .ids = request.hash_ids.size(),
                            .hit_ids = from->hit_ids,
                            .source = std::move(from->blocks),
                            .destination = std::move(to->blocks),
                            .after = to->after});
  }
  return out;
}

}  // namespace viaduct::measure
