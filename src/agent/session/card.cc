#include <viaduct/card.h>

#include "agent/session/messages.h"
#include "base/net/checked_blob.h"

namespace viaduct {

auto fields(base::Is<Card> auto& c) {
  return base::list(
      base::line(agent::kMaxNameBytes, c.name), c.agent, base::line(agent::kMaxNameBytes, c.boot),
      base::line(agent::kMaxNameBytes, c.unix_name),
      base::atMost(agent::kMaxAddresses, c.addresses, agent::kMaxNameBytes),
      base::must([&c] { return agent::arePrintable(c.addresses); }), c.secret, c.pins);
}

namespace {

constexpr base::BlobKind kCard{.magic = "VIADCARD",
                               .version = 1,
                               .name = "Card",
                               .maker = "exportCard()",
                               .taker = "importCard"};

}  // namespace

std::vector<std::byte> Card::encode() const { return base::wrapBlob(kCard, base::encode(*this)); }

Result<Card> Card::decode(std::span<const std::byte> blob) {
  VIADUCT_TRY(const auto body, base::unwrapBlob(kCard, blob));
  auto card = base::decode<Card>(body, "the Card's content");
  if (!card) return base::corruptedBlob(kCard, card.error().detail);
  return card;
}

}  // namespace viaduct
