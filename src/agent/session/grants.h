// The grants of a card: the claim that its holder shows, the key that proves it, and the rights
// that follow. Each grant is a list of caveats, and each caveat changes the key, so whoever has the
// key of a card can add caveats and remove none. docs/design/0065-cards-that-grant.md. Threads:
// pure functions.
#pragma once

#include <viaduct/card.h>

#include <chrono>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/bytes.h"
#include "base/net/crypto.h"
#include "base/net/handshake.h"
#include "core/pin_rights.h"

namespace viaduct::agent {

using WallTime = std::chrono::system_clock::time_point;

using base::kMaxClaimBytes;
inline constexpr std::size_t kMaxGrants = 16;        // the owner's, and one for each narrowing
inline constexpr std::size_t kMaxCaveatBytes = 255;  // of a pattern or a name
// The last moment of a grant, in milliseconds since 1970.
inline constexpr std::uint64_t kLastMoment = 9'000'000'000'000;

// A claim is the grants of a card as bytes. A card that grants all has an empty one.
base::Bytes claimOf(std::span<const Grant> grants);
// Refuses malformed bytes, and caveats that this version does not know.
Result<std::vector<Grant>> decodeClaim(base::ByteSpan claim);
// The secret of a card with this claim. `root`: the key of the agent. None: the bytes are no claim
// with at least one grant. Does not interpret the caveats.
std::optional<base::Key> keyOfClaim(const base::Key& root, base::ByteSpan claim);
// The secret of a card after further caveats.
std::optional<base::Key> narrowedKey(const base::Key& secret, base::ByteSpan caveats);

// Whether `label` matches the pattern, in which '*' stands for any text.
bool matches(std::string_view pattern, std::string_view label);
// The right that all of these grants give to a pin with this label. No grants: all rights.
core::PinRight rightTo(std::string_view label, std::span<const Grant> grants);
// Takes from `pin` what these grants do not give. False: nothing is left of it.
bool limit(PinInfo& pin, std::span<const Grant> grants);
// The earliest end; none: there is no end.
std::optional<WallTime> endOf(std::span<const Grant> grants);
bool hasId(std::span<const Grant> grants, const CardId& id);

// Sets a fresh id. Refuses a grant that is malformed or has ended already.
Status prepare(Grant& grant, WallTime now);
// Refuses grants that together allow nothing, and a last grant that ends after the ones before.
Status checkNarrowed(std::span<const Grant> grants);
// For the owner: refuses a holder of this name at this time.
Status mayUse(std::span<const Grant> grants, std::string_view holder, WallTime now);

std::string textOf(std::span<const Grant> grants);

}  // namespace viaduct::agent
