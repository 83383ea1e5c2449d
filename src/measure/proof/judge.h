// Judges a row: which devices carried its bytes, how near it is to its ceiling, and whether it can
// be true. docs/measuring.md has the rules. Threads: pure functions over values.
#pragma once

#include <viaduct/result.h>

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "causes/causes.h"
#include "measure/proof/clock_watch.h"
#include "measure/proof/observation.h"
#include "measure/result/row.h"
#include "measure/result/row_figures.h"
#include "measure/workload/hints.h"
#include "measure/workload/link_rate.h"

namespace viaduct::measure::proof {

// The time by a member's clock, and the time that the kernel counted for a processor, busy or idle.
// A library in the process can change what clocks say, but hardly what the kernel counts.
struct TickedClock {
  std::uint32_t rank = 0;
  double seconds = 0, ticked = 0;
  double behind() const { return ticked - seconds; }
  bool isImpossible() const;
};

// The facts about a row that its runner knows.
struct RowFacts {
  std::string backend = {};
  std::string require = {};        // a requirement as in TransferOptions::require
  double gb_per_s = 0;             // 10^9 payload bytes a second, of all pairs together
  std::vector<double> parts = {};  // the rates of the row's parts; gb_per_s may be their median
  double cores_busy = 0;           // by all processes of the benchmark, from coresBusy()
  double cores_others = 0;         // by all other programs on their hosts
  double cores = 0;                // of these hosts together; 0: unknown
  Totals totals = {};
  ClockDrift clock = {};             // of the member whose clocks differ most
  std::uint32_t clock_rank = 0;      // the rank of that member
  TickedClock ticks = {};            // of the member whose clock is most behind
  double rate_kept = 0;              // open loop: the reached part of the requested rate
  std::uint64_t transfer_bytes = 0;  // of one transfer
  std::uint64_t working_set = 0;     // bytes that one side cycles through; 0: one transfer
  std::uint64_t block = 0;           // bytes of a block, which is contiguous in memory
  causes::Pages pages = causes::Pages::kHuge;  // of the members' host memory
  Verified verified = Verified::kOff;
  std::optional<std::string> mismatch = {};  // the first wrong bytes and their place
  std::optional<Error> failure = {};         // why the row could not be measured
  FlagNames flags = {};                      // the flags that the conclusion may advise
};

struct Judgement {
  std::vector<ProvenShare> path = {};
  std::string proof = {};
  std::optional<Ceiling> ceiling = {};  // none: unknown, or the row outran the measured rate
  std::string ceiling_unknown = {};     // a limit that is not known, and why
  Verdict verdict = Verdict::kUnproven;
  std::string why = {};     // the reason, unless the verdict is ok
  std::string remark = {};  // other facts that explain the figures
  std::vector<causes::Cause> causes = {};
  std::vector<DeviceCounts> devices = {};
  std::vector<CountedPayload> counted = {};
  std::string conclusion = {};  // the limit, the distance from the ceiling, and causes or a hint
};

// Judges one row. `seen` has one observation of each member, by rank. `link_rates` override the
// rates that devices report.
Judgement judge(std::span<const Observation> seen, const RowFacts& facts,
                std::span<const LinkRate> link_rates);

}  // namespace viaduct::measure::proof
