// Says of a row which devices really carried its bytes, how near it is to what binds, and whether
// it can be believed. docs/measuring.md describes the rules. Threads: pure functions over values.
#pragma once

#include <viaduct/result.h>

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "measure/load/link_rate.h"
#include "measure/proof/clock_watch.h"
#include "measure/proof/observation.h"
#include "measure/result/row.h"

namespace viaduct::measure::proof {

// Bytes of a row, counted in ways that have nothing in common.
struct Totals {
  double rated = 0;    // that the rate was made from
  double timed = 0;    // iterations x bytes of one
  double all = 0;      // transfers x bytes of one, untimed ones too: what paths have to count
  double seconds = 0;  // over which `rated` was moved; 0: nothing of this is known
};

// What the runner knows of a row.
struct RowFacts {
  std::string backend = {};
  std::string require = {};  // as TransferOptions::require
  double gb_per_s = 0;       // 10^9 payload bytes a second, of all pairs together
  double cores_busy = 0;     // by all processes, as coresBusy() says
  double cores_others = 0;   // by whatever else ran on their hosts meanwhile
  double cores = 0;          // that these hosts have; 0: not known
  Totals totals = {};
  ClockDrift clock = {};             // of the member whose clocks differ most
  std::uint32_t clock_rank = 0;      // who that is
  double rate_kept = 0;              // open loop: what part of the rate asked for was reached
  std::uint64_t transfer_bytes = 0;  // of one transfer
  std::uint64_t working_set = 0;     // bytes that one side cycles through; 0: one transfer
  Verified verified = Verified::kOff;
  std::optional<std::string> mismatch = {};  // what arrived wrong, and where
  std::optional<Error> failure = {};         // why it could not be measured
};

// How many cores were busy during `row` seconds, of which CPU seconds were counted over `counted`
// seconds; 0: not known, since much of these lies before or behind the row, as where it lasted
// milliseconds only.
double coresBusy(double cpu, double row, double counted);

struct Judgement {
  std::vector<ProvenShare> path = {};
  std::string proof = {};
  std::optional<Ceiling> ceiling = {};  // none where the row outran the rate measured for memory
  Verdict verdict = Verdict::kUnproven;
  std::string why = {};         // when not ok
  std::string remark = {};      // what a reader of the figures has to know besides
  std::string conclusion = {};  // what limits, how far from the ceiling, what to look at
};

// `seen`: by rank, one of each member. `link_rates` win over what devices say.
Judgement judge(std::span<const Observation> seen, const RowFacts& facts,
                std::span<const LinkRate> link_rates);

}  // namespace viaduct::measure::proof
