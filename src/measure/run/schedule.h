// Divides a row into runs, and decides how many of its transfers are checked. Threads: plain values
// and pure functions.
#pragma once

#include <cstdint>
#include <vector>

#include "measure/proof/lane.h"
#include "measure/workload/spec.h"

namespace viaduct::measure {

// In a run all streams move at the same time, between two barriers.
struct Schedule {
  std::vector<Goal> mixed = {};  // the runs of all repeats; empty: all runs are equal and timed
  Goal repeat = {};              // the goal of all timed runs of a repeat together
  std::uint64_t repeats = 1;
  std::uint64_t timed_of_repeat = 1;  // timed runs of a repeat
  bool every_transfer = false;        // every transfer is checked
  bool refills = false;               // every run has new contents, and uses each set at most once
  Interrupted planned = {};           // the row's length unless it ends early

  // runs() returns the number of all runs, and run() returns the goal of one run.
  std::uint64_t runs() const { return mixed.empty() ? repeats * timed_of_repeat : mixed.size(); }
  Goal run(std::uint64_t number) const;
};

// Returns true if each transfer of each stream is a read that the lanes can check. Such a read goes
// into host memory in blocks of at least 8 bytes. KV, ping-pong and matrix rows have none.
bool everyReadIsChecked(const Spec& spec, const Workload& row);

// The results of the warm-up, equal at all members.
struct WarmUp {
  double seconds = 0;      // of a transfer of the slowest stream
  double exchange = 0;     // seconds of an exchange between the members
  std::uint64_t dice = 0;  // a random number that nobody could know before the warm-up ended
};
struct ScheduleFacts {
  WarmUp warm = {};
  std::size_t streams = 1;
  std::uint64_t sets = 1;  // the lowest number of sets of any stream
};
Schedule scheduleOf(const Spec& spec, const Workload& row, const ScheduleFacts& facts);

}  // namespace viaduct::measure
