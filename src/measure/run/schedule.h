// How a row's transfers are spread over rounds, and how many of them are checked. Threads: plain
// values and pure functions.
#pragma once

#include <cstdint>

#include "measure/lane/lane.h"
#include "measure/load/spec.h"

namespace viaduct::measure {

// In a round all streams run at the same time, between two barriers.
struct Schedule {
  std::uint64_t rounds = 1;      // of each repeat
  std::uint64_t iterations = 0;  // of each stream in all rounds together; at least, with a time
  Duration time{0};              // that all rounds together take
  bool every_transfer = false;   // is checked, in rounds that use each set once
  std::uint64_t checks = 0;      // spot checks of each stream before, between and after rounds

  Goal goalOf(std::uint64_t round) const;
};

// How long the row is to take, for a row that does not.
Interrupted plannedOf(const Schedule& schedule, std::uint32_t repeats, std::size_t streams);

// `seconds`: of one transfer of the slowest stream, as warming up has shown. `sets`: the fewest
// that one of the streams has.
Schedule scheduleOf(const Spec& spec, const Workload& row, double seconds, std::size_t streams,
                    std::uint64_t sets);

}  // namespace viaduct::measure
