#include <fmt/format.h>
#include <fmt/ranges.h>
#include <viaduct/card.h>

#include <algorithm>
#include <utility>

#include "agent/session/grants.h"
#include "agent/session/messages.h"
#include "base/net/checked_blob.h"
#include "base/printable.h"

namespace viaduct {
namespace {

// A Card in its encoded form.
struct CardBody {
  Card card = {};
  base::Bytes claim = {};
};
auto fields(base::Is<CardBody> auto& b) {
  auto& c = b.card;
  return base::list(base::line(agent::kMaxNameBytes, c.name), c.agent,
                    base::line(agent::kMaxNameBytes, c.boot),
                    base::line(agent::kMaxNameBytes, c.unix_name),
                    base::atMost(agent::kMaxAddresses, c.addresses, agent::kMaxNameBytes),
                    base::must([&c] { return agent::arePrintable(c.addresses); }), c.secret,
                    base::atMost(agent::kMaxClaimBytes, b.claim), c.pins);
}

constexpr base::BlobKind kCard{.magic = "VIADCARD",
                               .version = 1,
                               .name = "Card",
                               .maker = "exportCard()",
                               .taker = "importCard"};

// Keeps the pins that the grants allow, with the access that the grants allow.
void keepGranted(std::vector<PinInfo>& pins, std::span<const Grant> grants) {
  std::erase_if(pins, [grants](PinInfo& pin) { return !agent::limit(pin, grants); });
}

}  // namespace

std::string cardIdText(const CardId& id) { return fmt::format("{:02x}", fmt::join(id, "")); }

Result<CardId> cardIdFrom(std::string_view text) {
  CardId id{};
  const auto digit = [](char c) {
    if (c >= '0' && c <= '9') return c - '0';
    return c >= 'a' && c <= 'f' ? c - 'a' + 10 : -1;
  };
  bool right = text.size() == 2 * id.size();
  for (std::size_t i = 0; right && i < id.size(); ++i) {
    const int high = digit(text[2 * i]), low = digit(text[2 * i + 1]);
    right = high >= 0 && low >= 0;
    if (right) id[i] = static_cast<std::uint8_t>(high * 16 + low);
  }
  if (right) return id;
  return Error{.code = Code::kInvalid,
               .operation = "id of a Card",
               .detail = fmt::format("\"{}\" is no id", base::printable(text, 40)),
               .remedy = "give the 32 digits of 0-9 and a-f of the text of a Card's id"};
}

std::optional<CardId> Card::id() const {
  if (grants.empty()) return std::nullopt;
  return grants.back().id;
}

std::string Card::grantText() const { return agent::textOf(grants); }

Result<Card> Card::narrow(Grant grant) const {
  if (grants.empty())
    return Error{.code = Code::kInvalid,
                 .operation = "narrow a Card",
                 .detail = "this Card grants all: its secret is the agent's own",
                 .remedy = "ask the owner for a Card with a grant, which may be for all pins"};
  VIADUCT_CHECK(agent::prepare(grant, std::chrono::system_clock::now()));
  Card out = *this;
  out.grants.push_back(std::move(grant));
  VIADUCT_CHECK(agent::checkNarrowed(out.grants));
  const auto caveats = agent::claimOf(std::span(out.grants).last(1));
  // claimOf() writes well-formed caveats.
  out.secret = *agent::narrowedKey(secret, caveats);
  keepGranted(out.pins, out.grants);
  return out;
}

std::vector<std::byte> Card::encode() const {
  return base::wrapBlob(kCard, base::encode(CardBody{*this, agent::claimOf(grants)}));
}

Result<Card> Card::decode(std::span<const std::byte> blob) {
  VIADUCT_TRY(const auto bytes, base::unwrapBlob(kCard, blob));
  auto body = base::decode<CardBody>(bytes, "the Card's content");
  if (!body) return base::corruptedBlob(kCard, body.error().detail);
  VIADUCT_TRY(body->card.grants, agent::decodeClaim(body->claim));
  return std::move(body->card);
}

}  // namespace viaduct
