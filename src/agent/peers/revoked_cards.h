// The ids of cards that this agent has revoked, until their grants end. Threads: under the agent's
// lock.
#pragma once

#include <viaduct/card.h>

#include <cstddef>
#include <map>
#include <optional>
#include <span>

#include "agent/session/grants.h"

namespace viaduct::agent {

class RevokedCards {
 public:
  static constexpr std::size_t kMost = std::size_t{1} << 16U;

  // `until`: the id may be forgotten then; none: never. Fails if kMost ids are live.
  Status add(const CardId& id, std::optional<WallTime> until, WallTime now);
  // Whether one of these grants, or a card from which they were narrowed, is revoked.
  bool has(std::span<const Grant> grants) const;
  void clear() { ids_.clear(); }

 private:
  std::map<CardId, std::optional<WallTime>> ids_;
};

}  // namespace viaduct::agent
