#include "agent/peers/revoked_cards.h"

#include <fmt/format.h>

#include <algorithm>

namespace viaduct::agent {

Status RevokedCards::add(const CardId& id, std::optional<WallTime> until, WallTime now) {
  if (ids_.size() >= kMost)
    std::erase_if(ids_, [now](const auto& one) { return one.second && *one.second <= now; });
  if (ids_.size() >= kMost && !ids_.contains(id))
    return Error{.code = Code::kExhausted,
                 .operation = "revoke a Card",
                 .detail = fmt::format("{} revoked ids are remembered, the most", kMost),
                 .cause = "many Cards without an end, or with a late one, were revoked",
                 .remedy =
                     "call revokeCards(), which makes all Cards with a grant void, and export "
                     "new ones with an earlier `until`"};
  const auto [known, added] = ids_.try_emplace(id, until);
  auto& end = known->second;
  if (!added && end && (!until || *until > *end)) end = until;
  return Ok{};
}

bool RevokedCards::has(std::span<const Grant> grants) const {
  return std::ranges::any_of(grants, [this](const Grant& one) { return ids_.contains(one.id); });
}

}  // namespace viaduct::agent
