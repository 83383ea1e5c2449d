// Spreads a row's transfers over rounds, and decides how many of them are checked. Threads: plain
// values and pure functions.
#pragma once

#include <cstdint>

#include "measure/proof/lane.h"
#include "measure/workload/spec.h"

namespace viaduct::measure {

// The rounds of a row. In a round all streams run at the same time, between two barriers.
struct Schedule {
  std::uint64_t repeats = 1;
  std::uint64_t rounds = 1;      // rounds of each repeat
  std::uint64_t iterations = 0;  // of each stream in a repeat; a minimum if `time` is set
  Duration time{0};              // duration of a repeat
  bool every_transfer = false;   // every transfer is checked, in rounds that use each set once
  std::uint64_t checks = 0;      // spot checks of each stream: before, between and after rounds
  Interrupted planned = {};      // the length of a row that is not ended early

  std::uint64_t all() const { return repeats * rounds; }
  Goal goalOf(std::uint64_t round) const;  // of a round of a repeat
};

// `seconds` is the time of one transfer of the slowest stream, as the warm-up measured it. `sets`
// is the lowest number of sets of any stream.
Schedule scheduleOf(const Spec& spec, const Workload& row, double seconds, std::size_t streams,
                    std::uint64_t sets);

}  // namespace viaduct::measure
