// One member's part of a row, which it sends to the other members. Threads: plain values.
#pragma once

#include <viaduct/path.h>

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "measure/proof/clock_watch.h"
#include "measure/proof/lane.h"
#include "measure/result/histogram.h"
#include "measure/result/row.h"
#include "measure/workload/spec.h"

namespace viaduct::measure {

// The error of a member, if it failed.
using Failure = std::optional<Error>;

// One stream in one round. Times are those of its host's steady clock.
struct TimeStretch {
  std::uint32_t stream = 0;
  std::uint64_t iterations = 0;
  std::uint64_t start_ns = 0;
  std::vector<LaneTimes::Part> parts = {};  // consecutive, from start_ns on
  std::uint64_t transfers = 0;              // with those before start_ns
};

// One member's report of a round.
struct RoundShare {
  Failure failure = {};
  std::uint64_t left_ns = 0;                  // when this member left the barrier before the round
  std::optional<std::uint32_t> stop_by = {};  // the rank that asked to end the run
  double exchange_s = 0;                      // the duration of this member's last exchange
  std::uint64_t nonce = 0;                    // random; nobody else knows it before the run's end
  std::vector<TimeStretch> streams = {};
  std::string more = {};  // encoded: what only the row's own transfers tell each other
};
// The reports of all members for a row's timed runs.
struct Rounds {
  using Round = std::vector<RoundShare>;  // by rank
  std::vector<Round> each = {};           // those of the first repeat come first
  Round alone = {};                       // only the first device of the scaled side moved
  std::uint64_t of_a_repeat = 1;
  std::uint64_t all = 0;     // planned rounds of all repeats
  Interrupted planned = {};  // their planned length, which slow transfers exceed
  bool stopped = false;      // a stop request came before the end of the last round
  bool every_transfer_checked = false;
  double checking_s = 0;  // short runs, new contents and their comparison
};

struct StreamShare {
  std::uint32_t stream = 0;
  std::uint64_t iterations = 0;  // of all rounds
  std::uint64_t bytes = 0;       // of these
  Latency latency_us = {};
};

// The CPU time of a member's process, and of its whole machine in the same time.
struct CpuUse {
  double used = 0, over = 0;  // CPU seconds of the process, and the seconds in which they were used
  double machine = 0;         // CPU seconds of the machine
  double idle = 0;            // idle seconds of the machine's processors
  std::uint32_t processors = 0;  // of the machine; 0: the machine's figures are unknown
  void add(const CpuUse& more) {
    used += more.used;
    over += more.over;
    machine += more.machine;
    idle += more.idle;
    processors = more.processors;
  }
};

// The background transfers of a member beside its streams: docs/priority.md.
struct BackgroundShare {
  std::uint64_t transfers = 0;  // that the member's claims count
  double gb_per_s = 0;          // of all of its flows together
  double longest_gap_s = 0;     // between two ends of a flow
};

struct RowShare {
  Failure failure = {};
  std::vector<StreamShare> streams = {};
  Histogram latency = {}, prep = {}, post = {}, tx = {};  // nanoseconds, of the member's streams
  std::uint64_t transfers = 0;  // transfers that the member's claims count, timed or not
  std::uint64_t bytes = 0;      // of these transfers
  std::uint64_t ops = 0;        // of one of them, after coalescing
  BackgroundShare background = {};
  CpuUse cpu = {};  // of all rounds
  proof::ClockDrift clock = {};
  std::string mismatch = {};             // empty: no wrong bytes
  std::uint64_t checks = 0, missed = 0;  // checked transfers, and how many were wrong
  std::uint64_t words = 0;               // checked ones, of a KV row
  // If a replay was interrupted: the rate at which the trace has the replayed requests. Otherwise
  // nothing, and Spec::rate holds.
  std::optional<double> asked_per_s = {};
  std::vector<RateInterval> intervals = {};  // of the member's own streams
  std::vector<std::uint32_t> gpus = {};      // whose memory the member's devices have
  std::string observation = {};              // of the devices, encoded
};

Latency latencyOf(const Histogram& nanoseconds);

std::string encode(const Failure& failure);
Result<Failure> decodeFailure(std::string_view text);
std::string encode(const RoundShare& share);
Result<RoundShare> decodeRound(std::string_view text);
std::string encode(const RowShare& share);
Result<RowShare> decodeShare(std::string_view text);

// The row that is made from the shares of all members, with its conclusion for people.
struct Composed {
  Row row = {};
  std::string conclusion = {};
  // The rank that asked to end the run with this row. It comes from the reports of a round, so it
  // is the same at all members.
  std::optional<std::uint32_t> stop_by = {};
  // For rank 0: false if the run ended before the row's first timed transfer.
  bool measured() const { return !stop_by || row.iterations != 0; }
};
Result<Composed> compose(const Spec& spec, const Workload& workload,
                         std::span<const RowShare> shares, const Rounds& rounds);

}  // namespace viaduct::measure
