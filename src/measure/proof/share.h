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
#include "measure/result/row_figures.h"
#include "measure/workload/spec.h"

namespace viaduct::measure {

// The error of a member, if it failed.
using Failure = std::optional<Error>;

// One stream in one round. Times are by the steady clock of the stream's host.
struct TimeStretch {
  std::uint32_t stream = 0;
  std::uint64_t iterations = 0;
  std::uint64_t start_ns = 0;
  std::vector<LaneTimes::Part> parts = {};  // consecutive, from start_ns on
  std::uint64_t transfers = 0;              // includes the transfers before start_ns
};

// One member's report of a round.
struct RoundShare {
  Failure failure = {};
  // When this member entered the barrier before the round, and left it.
  std::uint64_t entered_ns = 0, left_ns = 0;
  std::optional<std::uint32_t> stop_by = {};  // the rank that asked to end the run
  double exchange_s = 0;                      // the duration of this member's last exchange
  std::uint64_t nonce = 0;                    // random, and secret until the round has ended
  std::vector<TimeStretch> streams = {};
  std::string more = {};  // encoded data that only the row's kind of transfers reads
};
// The reports of all members for a row's timed runs.
struct Rounds {
  using Round = std::vector<RoundShare>;  // by rank
  std::vector<Round> each = {};           // the rounds of all repeats, in order
  Round alone = {};                       // a round of only the first device of the scaled side
  std::uint64_t of_a_repeat = 1;
  std::uint64_t all = 0;     // planned rounds of all repeats
  Interrupted planned = {};  // their planned length; slow transfers may exceed it
  bool stopped = false;      // a stop request came before the end of the last round
  bool every_transfer_checked = false;
  double checking_s = 0;  // time for short runs, for new contents, and for comparing them
};

struct StreamShare {
  std::uint32_t stream = 0;
  std::uint64_t iterations = 0;  // of all timed rounds
  std::uint64_t bytes = 0;       // of these iterations
  Latency latency_us = {};
};

// The CPU time of a member's process, and of its whole machine in the same time.
struct CpuUse {
  double used = 0, over = 0;  // CPU seconds of the process, and the seconds of the measured period
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
  std::uint64_t transfers = 0;  // transfers that the member's claims count
  double gb_per_s = 0;          // of all of its flows together
  double longest_gap_s = 0;     // longest time between two completions of a flow
};

struct RowShare {
  Failure failure = {};
  std::vector<StreamShare> streams = {};
  Histogram latency = {}, prep = {}, post = {}, tx = {};  // nanoseconds, of the member's streams
  std::uint64_t transfers = 0;  // transfers that the member's claims count, timed or not
  std::uint64_t bytes = 0;      // of these transfers
  std::uint64_t ops = 0;        // of one transfer, after coalescing
  BackgroundShare background = {};
  CpuUse cpu = {};  // of all timed rounds
  proof::ClockDrift clock = {};
  std::string mismatch = {};             // empty: no wrong bytes
  std::uint64_t checks = 0, missed = 0;  // checked transfers, and how many were wrong
  std::uint64_t words = 0;               // checked words of a KV row
  // Only after an interrupted replay: the rate at which the trace contains the replayed requests.
  // If missing, Spec::rate applies.
  std::optional<double> asked_per_s = {};
  std::vector<RateInterval> intervals = {};  // of the member's own streams
  std::vector<std::uint32_t> gpus = {};      // the GPUs of the member's devices
  std::string observation = {};              // the encoded proof::Observation
};

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
