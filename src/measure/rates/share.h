// What one member has to say of a row, as it goes to the others. Threads: plain values.
#pragma once

#include <viaduct/path.h>

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "measure/lane/lane.h"
#include "measure/load/spec.h"
#include "measure/proof/clock_watch.h"
#include "measure/result/row.h"
#include "measure/stats/histogram.h"

namespace viaduct::measure {

// What went wrong at a member, if anything.
using Failure = std::optional<Error>;

// One stream in one round. Times are of its host's steady clock.
struct TimeStretch {
  std::uint32_t stream = 0;
  std::uint64_t iterations = 0;
  std::uint64_t start_ns = 0;
  std::vector<LaneTimes::Part> parts = {};  // one behind another from there
};

// What a member tells after each round.
struct RoundShare {
  Failure failure = {};
  std::uint64_t left_ns = 0;                  // when the barrier before it let this member go
  std::optional<std::uint32_t> stop_by = {};  // the rank that has asked to end the run
  std::vector<TimeStretch> streams = {};
};
// What all members tell of a row's rounds.
struct Rounds {
  using Round = std::vector<RoundShare>;  // by rank
  std::vector<Round> each = {};           // those of the first repeat first
  std::uint64_t of_a_repeat = 1;
  Interrupted planned = {};  // how long all of them were to take
  bool stopped = false;      // before the last of them
  bool every_transfer_checked = false;
};

struct StreamShare {
  std::uint32_t stream = 0;
  std::uint64_t iterations = 0;  // of all rounds
  Latency latency_us = {};
};

// What a member's process took of the processors, and what everything on its machine did meanwhile.
struct CpuUse {
  double used = 0, over = 0;     // seconds of CPU, and of the time over which they were used
  double machine = 0;            // seconds of CPU
  std::uint32_t processors = 0;  // of the machine; 0: neither is known
  void add(const CpuUse& more) {
    used += more.used;
    over += more.over;
    machine += more.machine;
    processors = more.processors;
  }
};

struct RowShare {
  Failure failure = {};
  std::vector<StreamShare> streams = {};
  Histogram latency = {}, prep = {}, post = {}, tx = {};  // nanoseconds, of all its streams
  std::uint64_t transfers = 0;                            // that its claims count, timed or not
  CpuUse cpu = {};                                        // of all rounds
  proof::ClockDrift clock = {};
  std::string mismatch = {};             // empty: none
  std::uint64_t checks = 0, missed = 0;  // transfers whose contents were looked at, and were wrong
  std::vector<RateInterval> intervals = {};  // of its own streams
  std::string observation = {};              // of the devices
};

Latency latencyOf(const Histogram& nanoseconds);

std::string encode(const Failure& failure);
Result<Failure> decodeFailure(std::string_view text);
std::string encode(const RoundShare& share);
Result<RoundShare> decodeRound(std::string_view text);
std::string encode(const RowShare& share);
Result<RowShare> decodeShare(std::string_view text);

// The row that all members' shares make, by rank. A conclusion for people goes with it.
struct Composed {
  Row row = {};
  std::string conclusion = {};
  // The rank that has asked to end the run, which ends with this row; known to all members.
  std::optional<std::uint32_t> stop_by = {};
  // Rank 0 has a row: not where the run was ended before the first timed transfer.
  bool measured() const { return !stop_by || row.iterations != 0; }
};
Result<Composed> compose(const Spec& spec, const Workload& workload,
                         std::span<const RowShare> shares, const Rounds& rounds);

}  // namespace viaduct::measure
