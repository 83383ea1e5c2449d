// The small blob that admits its holder to an agent, to all of its pins or to those of a grant.
// docs/cards.md. Threads: plain values.
#pragma once

#include <viaduct/memory.h>
#include <viaduct/result.h>

#include <array>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace viaduct {

enum class CardAccess : std::uint8_t { kRead = 1, kWrite = 2, kBoth = 3 };

// Names one card with a grant, and with it all cards that were narrowed from it.
using CardId = std::array<std::uint8_t, 16>;
std::string cardIdText(const CardId& id);  // 32 hexadecimal digits
Result<CardId> cardIdFrom(std::string_view text);

// The access that a card gives its holder. The owner of the pins checks it.
struct Grant {
  // The pins whose labels match, now and later. '*' stands for any text, also for none and for '/'.
  std::string pins = "*";
  CardAccess access = CardAccess::kBoth;
  // The end of the grant, by the clock of the owner's host. None: as long as the owner lives.
  std::optional<std::chrono::system_clock::time_point> until = {};
  std::string name = {};  // the only agent that may use the card, by its name; empty: any
  CardId id = {};         // set by Agent::card, Agent::exportCard and Card::narrow
};

struct Card {
  std::string name = {};
  std::array<std::uint8_t, 16> agent = {};   // identifies this agent; after a restart it differs
  std::string boot = {};                     // identifies the running kernel of its host
  std::string unix_name = {};                // abstract Unix socket of its listener; may be empty
  std::vector<std::string> addresses = {};   // "host:port", "[v6]:port"
  std::array<std::uint8_t, 32> secret = {};  // admits its holder: treat a Card like a password
  std::vector<PinInfo> pins = {};            // the granted pins at the time of export
  // The grants of the owner's card and of each narrowing. The holder may do only what all of them
  // allow. None: the card grants all pins, for reading and writing, as long as the agent lives.
  std::vector<Grant> grants = {};

  bool grantsAll() const { return grants.empty(); }
  // The id for Agent::revokeCard; none if the card grants all.
  std::optional<CardId> id() const;
  // In words: "all pins, reading and writing", "pins like kv/*, reading, until 2027-01-01
  // 00:00:00".
  std::string grantText() const;
  // Makes a card that grants less, with an id of its own, without asking the owner. Fails if it
  // would grant more than this card, or nothing. A card that grants all cannot be narrowed: its
  // owner exports another.
  Result<Card> narrow(Grant grant) const;

  std::vector<std::byte> encode() const;
  // Refuses a blob that is truncated, corrupted or of another version; the error says which.
  static Result<Card> decode(std::span<const std::byte> blob);
};

}  // namespace viaduct
