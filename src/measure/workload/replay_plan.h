// Plans the replay of a trace: which blocks each request moves from the pool of prefill to the pool
// of decode. Equal inputs give equal plans, so both members compute the plan without an exchange.
// Threads: plain values and pure functions.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <vector>

#include "measure/workload/pager.h"
#include "measure/workload/trace.h"

namespace viaduct::measure {

struct ReplayRequest {
  std::uint64_t number = 0;  // index in the trace
  double due_s = 0;          // after the start
  std::uint32_t tokens = 0, hit_tokens = 0;
  std::uint64_t ids = 0, hit_ids = 0;
  BlockIds source = {}, destination = {};
  std::optional<std::uint64_t> after = {};  // index of the planned request that must end first
};
struct ReplayPlan {
  std::vector<ReplayRequest> requests = {};
  std::uint64_t left_out = 0;  // requests that are larger than a pool
};
// Returns the blocks of one pool that the plan's requests use, ascending and without duplicates.
// `side` is &ReplayRequest::source or &ReplayRequest::destination.
BlockIds blocksOf(const ReplayPlan& plan, BlockIds ReplayRequest::* side);

// `speed` divides the times of the trace. `blocks` is the size of each pool. `progress` is called
// repeatedly with the number of planned requests.
ReplayPlan planReplay(const Trace& trace, std::uint64_t blocks, std::uint32_t block_tokens,
                      double speed,
                      const std::function<void(std::uint64_t planned)>& progress = {});

}  // namespace viaduct::measure
