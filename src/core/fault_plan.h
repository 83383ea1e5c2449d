// The text of VIADUCT_FAULTS, read: which faults hit which ops (docs/faults.md). Threads: pure
// functions.
#pragma once

#include <viaduct/deadline.h>
#include <viaduct/result.h>
#include <viaduct/settings.h>
#include <viaduct/statistics.h>

#include <cstdint>
#include <optional>
#include <string_view>
#include <variant>
#include <vector>

namespace viaduct::core {

// Which ops a fault hits: each op with some probability, one op by its number, or the first op
// after some time. kLateLease hits leases in the same way.
struct Chance {
  double of = 1;
};
struct OpNumber {
  std::uint64_t number = 0;  // the first op has number 1
};
struct After {
  Duration time{0};  // since the agent was opened
};
using FaultWhen = std::variant<Chance, OpNumber, After>;

struct FaultRule {
  FaultKind kind = FaultKind::kDelay;
  std::optional<Duration> time = {};  // of the delay, of the rail's absence, or of the lease
  FaultWhen when = {};
};

struct FaultPlan {
  std::uint64_t seed = 1;
  std::vector<FaultRule> rules = {};
};

// Reads "seed=7,delay=2ms@0.01,stop@op:1000,drop-rail=1s@5s". An empty text has no rules.
Result<FaultPlan> parseFaults(std::string_view text);

// Refuses a text with a mistake, and faults that Settings::faults_allowed does not allow.
Status checkFaults(const Settings& settings);

}  // namespace viaduct::core
