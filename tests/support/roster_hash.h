// A number that two members have in common if they were given the same roster. Threads: any.
#pragma once

#include <fmt/format.h>

#include <cstddef>
#include <functional>
#include <string>

#include "meet/groups/group.h"

namespace viaduct::testing {

// Covers all of the roster but our own rank.
inline std::size_t hashOf(const meet::Roster& roster) {
  std::string all = fmt::format("{} {}", roster.group, roster.epoch);
  for (const meet::Member& member : roster.members)
    all += fmt::format("\n{} {:?} {:?}", member.rank, member.name, member.about);
  return std::hash<std::string>()(all);
}

}  // namespace viaduct::testing
