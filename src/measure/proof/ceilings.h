// Finds the highest possible rate of a row, and its cause. Threads: pure functions.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>

#include "measure/proof/account.h"
#include "measure/workload/link_rate.h"

namespace viaduct::measure::proof {

enum class Binding : std::uint8_t { kLink, kSlot, kMemory, kLoopback, kGpu };

struct Limit {
  Binding what = Binding::kLink;
  std::string name = {};  // "link eth0 of host-a, 100 Gbit/s"
  double gb_per_s = 0;    // of the whole row's payload
};

// The lowest limit of all hosts and directions that the row's bytes passed, and a limit that is
// unknown. limitsOf() takes as `working_set` the bytes that one side cycles through.
struct Limits {
  std::optional<Limit> binding = {};
  std::string unknown = {};  // "the rate of veth0 is not known"
};
Limits limitsOf(const Account& account, std::uint64_t working_set,
                std::span<const LinkRate> link_rates);

// Returns by how much a rate may exceed a limit before it cannot be true: 0.05 is 5 %. Payload
// never exceeds a link's rate, so a link gets 5 %, for imprecise clocks. Measured copy rates get
// 100 %, because they are measured briefly, while other programs may run.
double toleranceOf(Binding what);
// True if the limit is a rate of copies that was measured at the start.
bool isMeasured(Binding what);

}  // namespace viaduct::measure::proof
