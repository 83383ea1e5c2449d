// The C interface: cards and peers.
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

}  // namespace

// NOLINTBEGIN(readability-identifier-naming): the names of C
viaduct_code viaduct_card_export(viaduct_agent agent, void* buffer, uint64_t capacity,
                                 uint64_t* length, viaduct_error* error) {
  return call(error, [&]() -> Status {
    VIADUCT_TRY(const auto open, find<AgentObject>("export the card", "agent", agent.id));
    return copyBytes("export the card", open->agent.exportCard(), buffer, capacity, length);
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
