#include "measure/workload/replay_plan.h"

#include <cstddef>
#include <utility>

namespace viaduct::measure {

constexpr std::size_t kPlannedEvery = 256;  // requests

BlockIds blocksOf(const ReplayPlan& plan, BlockIds ReplayRequest::* side) {
  std::vector<bool> used;
  for (const ReplayRequest& request : plan.requests)
    for (const std::uint32_t block : request.*side) {
      if (block >= used.size()) used.resize(block + std::size_t{1});
      used[block] = true;
    }
  BlockIds out;
  for (std::size_t i = 0; i < used.size(); ++i)
    if (used[i]) out.push_back(static_cast<std::uint32_t>(i));
  return out;
}

ReplayPlan planReplay(const Trace& trace, std::uint64_t blocks, std::uint32_t block_tokens,
                      double speed, const std::function<void(std::uint64_t planned)>& progress) {
  PrefixCache prefill(blocks, block_tokens, trace.id_tokens);
  DecodeCache decode(blocks);
  ReplayPlan out;
  for (std::size_t i = 0; i < trace.requests.size(); ++i) {
    const TraceRequest& request = trace.requests[i];
    if (progress && i % kPlannedEvery == 0) progress(i);
    auto from = prefill.take(request);
    auto to = from ? decode.take(out.requests.size(), from->blocks.size()) : std::nullopt;
    if (!to) {
      ++out.left_out;
      continue;
    }
    const std::uint64_t after_start = request.time_us - trace.requests.front().time_us;
    out.requests.push_back({.number = i,
                            .due_s = static_cast<double>(after_start) * 1e-6 / speed,
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
