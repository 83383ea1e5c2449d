// The counters behind Agent::statistics(). Plain numbers, updated when a transfer ends. Threads:
// with the agent's lock held; CellCounts in a section (move/sections.h), by the thread that has the
// cell there.
#pragma once

#include <viaduct/statistics.h>

#include <array>
#include <cstdint>
#include <vector>

#include "agent/basis/timing.h"

namespace viaduct::agent {

using ErrorCounts = std::array<std::uint64_t, kCodes>;  // by Code

inline void count(ErrorCounts& errors, Code code) { ++errors[static_cast<std::size_t>(code)]; }

// The counts of one rail, over all transfers.
struct RailCounts {
  std::size_t number = 0;  // the rail's index among all rails of the agent
  std::uint64_t load = 0;  // bytes of slices that the rail was given and that are not back
  std::uint64_t bytes = 0, ops = 0;
  std::uint64_t times_set_aside = 0;
  ErrorCounts errors = {};
};

// The counts of one cell: transfers that were posted in sections.
struct alignas(64) CellCounts {
  // A cache line of its own: the vectors of two cells may be neighbours on the heap, and two
  // threads that count in one line post no faster than one.
  struct alignas(64) Carried {
    std::uint64_t bytes = 0, ops = 0;
  };
  std::uint64_t done = 0;
  Timing timing = {};
  std::vector<Carried> rails = {};  // by RailCounts::number
};

struct Counts {
  std::uint64_t started = 0, done = 0, failed = 0, cancelled = 0;
  std::uint64_t notes_sent = 0, notes_received = 0;
  std::uint64_t sessions_lost = 0;
  ErrorCounts errors_without_rail = {};
  LeaseStatistics lent = {}, borrowed = {};
  std::uint64_t stale = 0;
  Timing timing = {};
};

}  // namespace viaduct::agent
