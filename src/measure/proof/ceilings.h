// The most that a row could reach, and what sets it. Threads: pure functions.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>

#include "measure/load/link_rate.h"
#include "measure/proof/account.h"

namespace viaduct::measure::proof {

enum class Binding : std::uint8_t { kLink, kSlot, kMemory, kLoopback };

struct Limit {
  Binding what = Binding::kLink;
  std::string name = {};  // "link eth0 of host-a, 100 Gbit/s"
  double gb_per_s = 0;    // of the whole row's payload
};

// The lowest of the limits of all hosts and directions that the row's bytes took, and what could
// not be limited because nobody knows a rate. `working_set`: bytes that one side cycles through.
struct Limits {
  std::optional<Limit> binding = {};
  std::string unknown = {};  // "the rate of veth0 is not known"
};
Limits limitsOf(const Account& account, std::uint64_t working_set,
                std::span<const LinkRate> link_rates);

// How far above a limit a rate may be before it cannot be true. Payload never exceeds a link; the
// rest is for clocks. Memory is measured in a moment, on a machine that does other things too.
double toleranceOf(Binding what);

}  // namespace viaduct::measure::proof
