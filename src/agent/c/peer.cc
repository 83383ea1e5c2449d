// The C interface: cards and peers.
#include <fmt/format.h>

#include <chrono>
#include <optional>
#include <utility>

#include "agent/c/call.h"
#include "agent/c/objects.h"

namespace {

using namespace viaduct;
using namespace viaduct::agent::c;

static_assert(static_cast<int>(PeerState::kConnecting) == VIADUCT_PEER_IS_CONNECTING);
static_assert(static_cast<int>(PeerState::kReady) == VIADUCT_PEER_IS_READY);
static_assert(static_cast<int>(PeerState::kLost) == VIADUCT_PEER_IS_LOST);
static_assert(static_cast<int>(PeerState::kGone) == VIADUCT_PEER_IS_GONE);
static_assert(static_cast<int>(PeerState::kDraining) == VIADUCT_PEER_IS_DRAINING);

// The common part of calls that return a peer of an agent: `look` finds the peer.
template <class F>
viaduct_code givePeer(const char* operation, viaduct_agent agent, viaduct_peer* peer,
                      viaduct_error* error, F&& look) {
  return call(error, [&]() -> Status {
    VIADUCT_TRY(const auto open, find<AgentObject>(operation, "agent", agent.id));
    VIADUCT_CHECK(need(operation, "peer", peer));
    VIADUCT_TRY(auto found, look(open->agent));
    give<Peer>(*peer, std::move(found));
    return Ok{};
  });
}

Result<std::string_view> textOf(const char* operation, const char* what, const char* text) {
  VIADUCT_CHECK(need(operation, what, text));
  return std::string_view(text);
}

std::optional<std::chrono::system_clock::time_point> momentOf(std::int64_t ns) {
  if (ns == 0) return std::nullopt;
  return std::chrono::system_clock::time_point(
      std::chrono::duration_cast<std::chrono::system_clock::duration>(
          std::chrono::nanoseconds(ns)));
}

Result<Grant> grantOf(const char* operation, const viaduct_grant* given) {
  VIADUCT_CHECK(need(operation, "grant", given));
  if (!isSized(given))
    return misuse(operation, fmt::format("the grant has size {}", given->size),
                  "set its field `size` to its sizeof, as VIADUCT_INIT does");
  if (given->access < 0 || given->access > VIADUCT_GRANT_BOTH)
    return misuse(operation, fmt::format("no access has the number {}", given->access),
                  "use VIADUCT_GRANT_READ, VIADUCT_GRANT_WRITE or VIADUCT_GRANT_BOTH");
  Grant grant{.until = momentOf(given->until_ns)};
  if (given->pins != nullptr) grant.pins = given->pins;
  if (given->access != 0) grant.access = static_cast<CardAccess>(given->access);
  if (given->name != nullptr) grant.name = given->name;
  return grant;
}

Result<Card> cardOf(const char* operation, const void* card, std::uint64_t length) {
  VIADUCT_TRY(const auto bytes, bytesOf(operation, card, length));
  return Card::decode(bytes);
}

}  // namespace

// NOLINTBEGIN(readability-identifier-naming): the names of C
viaduct_code viaduct_card_export(viaduct_agent agent, void* buffer, uint64_t capacity,
                                 uint64_t* length, viaduct_error* error) {
  return call(error, [&]() -> Status {
    VIADUCT_TRY(const auto open, find<AgentObject>("export the card", "agent", agent.id));
    return copyBytes("export the card", open->agent.exportCard(), buffer, capacity, length);
  });
}

viaduct_code viaduct_card_export_granted(viaduct_agent agent, const viaduct_grant* grant,
                                         void* buffer, uint64_t capacity, uint64_t* length,
                                         viaduct_error* error) {
  return call(error, [&]() -> Status {
    constexpr auto kOperation = "export a card";
    VIADUCT_TRY(const auto open, find<AgentObject>(kOperation, "agent", agent.id));
    VIADUCT_TRY(auto granted, grantOf(kOperation, grant));
    VIADUCT_TRY(const auto card, open->agent.exportCard(std::move(granted)));
    return copyBytes(kOperation, card, buffer, capacity, length);
  });
}

viaduct_code viaduct_card_narrow(const void* card, uint64_t card_length, const viaduct_grant* grant,
                                 void* buffer, uint64_t capacity, uint64_t* length,
                                 viaduct_error* error) {
  return call(error, [&]() -> Status {
    constexpr auto kOperation = "narrow a card";
    VIADUCT_TRY(const Card wide, cardOf(kOperation, card, card_length));
    VIADUCT_TRY(auto granted, grantOf(kOperation, grant));
    VIADUCT_TRY(const Card less, wide.narrow(std::move(granted)));
    return copyBytes(kOperation, less.encode(), buffer, capacity, length);
  });
}

viaduct_code viaduct_card_describe(const void* card, uint64_t card_length,
                                   char id[VIADUCT_CARD_ID_SIZE], char* text, uint64_t capacity,
                                   viaduct_error* error) {
  return call(error, [&]() -> Status {
    constexpr auto kOperation = "describe a card";
    VIADUCT_TRY(const Card known, cardOf(kOperation, card, card_length));
    const auto number = known.id();
    std::uint64_t length = 0;
    if (text != nullptr)
      VIADUCT_CHECK(copyText(kOperation, known.grantText(), text, capacity, &length));
    if (id != nullptr)
      VIADUCT_CHECK(copyText(kOperation, number ? cardIdText(*number) : "", id,
                             VIADUCT_CARD_ID_SIZE, &length));
    return Ok{};
  });
}

viaduct_code viaduct_card_revoke(viaduct_agent agent, const char* id, int64_t until_ns,
                                 viaduct_error* error) {
  return call(error, [&]() -> Status {
    VIADUCT_TRY(const auto open, find<AgentObject>("revoke a card", "agent", agent.id));
    if (id == nullptr) return open->agent.revokeCards();
    VIADUCT_TRY(const CardId number, cardIdFrom(id));
    return open->agent.revokeCard(number, momentOf(until_ns));
  });
}

viaduct_code viaduct_card_import(viaduct_agent agent, const void* card, uint64_t length,
                                 viaduct_peer* peer, viaduct_error* error) {
  return givePeer("import a card", agent, peer, error, [&](Agent& open) -> Result<Peer> {
    VIADUCT_TRY(const auto bytes, bytesOf("import a card", card, length));
    return open.importCard(bytes);
  });
}

viaduct_code viaduct_peer_connect(viaduct_agent agent, const char* host_port, viaduct_peer* peer,
                                  viaduct_error* error) {
  return givePeer("connect", agent, peer, error, [&](Agent& open) -> Result<Peer> {
    VIADUCT_TRY(const auto address, textOf("connect", "host_port", host_port));
    return open.connect(address);
  });
}

viaduct_code viaduct_peer_find(viaduct_agent agent, const char* name, int64_t timeout_ns,
                               viaduct_peer* peer, viaduct_error* error) {
  return givePeer("find", agent, peer, error, [&](Agent& open) -> Result<Peer> {
    VIADUCT_TRY(const auto wanted, textOf("find", "name", name));
    return open.find(wanted, until(timeout_ns));
  });
}

viaduct_code viaduct_peer_self(viaduct_agent agent, viaduct_peer* peer, viaduct_error* error) {
  return givePeer("find the agent itself", agent, peer, error,
                  [](Agent& open) { return open.self(); });
}

viaduct_code viaduct_peer_known(viaduct_agent agent, const char* name, viaduct_peer* peer,
                                viaduct_error* error) {
  return givePeer("peer", agent, peer, error, [&](Agent& open) -> Result<Peer> {
    VIADUCT_TRY(const auto wanted, textOf("peer", "name", name));
    return open.peer(wanted);
  });
}

viaduct_code viaduct_peer_close(viaduct_peer peer, viaduct_error* error) {
  return call(error, [&]() -> Status {
    VIADUCT_CHECK(take<Peer>("close the peer", "peer", peer.id));
    return Ok{};
  });
}

viaduct_code viaduct_peer_state(viaduct_peer peer, int32_t* state, uint64_t* epoch,
                                viaduct_error* error) {
  return call(error, [&]() -> Status {
    VIADUCT_TRY(const auto known, find<Peer>("peer state", "peer", peer.id));
    VIADUCT_CHECK(need("peer state", "state", state));
    *state = static_cast<int32_t>(known->state());
    if (epoch != nullptr) *epoch = known->epoch();
    return Ok{};
  });
}

viaduct_code viaduct_peer_name(viaduct_peer peer, char* buffer, uint64_t capacity, uint64_t* length,
                               viaduct_error* error) {
  return call(error, [&]() -> Status {
    VIADUCT_TRY(const auto known, find<Peer>("peer name", "peer", peer.id));
    return copyText("peer name", known->name(), buffer, capacity, length);
  });
}

viaduct_code viaduct_peer_wait_ready(viaduct_peer peer, int64_t timeout_ns, viaduct_error* error) {
  return call(error, [&]() -> Status {
    VIADUCT_TRY(const auto known, find<Peer>("ready", "peer", peer.id));
    return known->ready(until(timeout_ns));
  });
}

viaduct_code viaduct_peer_wait_over(viaduct_peer peer, uint64_t epoch, int64_t timeout_ns,
                                    viaduct_error* error) {
  return call(error, [&]() -> Status {
    VIADUCT_TRY(const auto known, find<Peer>("over", "peer", peer.id));
    return known->over(epoch, until(timeout_ns));
  });
}

viaduct_code viaduct_peer_wait_pin(viaduct_peer peer, const char* label, int64_t timeout_ns,
                                   viaduct_pin_info* info, viaduct_error* error) {
  return call(error, [&]() -> Status {
    VIADUCT_TRY(const auto known, find<Peer>("waitPin", "peer", peer.id));
    VIADUCT_TRY(const auto wanted, textOf("waitPin", "label", label));
    VIADUCT_CHECK(needSized("waitPin", info));
    VIADUCT_TRY(const auto found, known->waitPin(std::string(wanted), until(timeout_ns)));
    describe(found, *info);
    return Ok{};
  });
}

viaduct_code viaduct_peer_settled(viaduct_peer peer, int32_t* settled, viaduct_error* error) {
  return call(error, [&]() -> Status {
    VIADUCT_TRY(const auto known, find<Peer>("settled", "peer", peer.id));
    VIADUCT_CHECK(need("settled", "settled", settled));
    *settled = known->settled() ? 1 : 0;
    return Ok{};
  });
}

viaduct_code viaduct_peer_forget(viaduct_peer peer, viaduct_error* error) {
  return call(error, [&]() -> Status {
    VIADUCT_TRY(const auto known, find<Peer>("forget", "peer", peer.id));
    known->forget();
    return Ok{};
  });
}

viaduct_code viaduct_note_send(viaduct_peer peer, const void* note, uint64_t bytes,
                               viaduct_error* error) {
  return call(error, [&]() -> Status {
    VIADUCT_TRY(const auto known, find<Peer>("note", "peer", peer.id));
    VIADUCT_TRY(const auto sent, bytesOf("note", note, bytes));
    return known->note(sent);
  });
}
// NOLINTEND(readability-identifier-naming)
