// The peers of an agent, the connections that are not theirs yet, and the notes that have arrived.
// Threads: with the agent's lock held.
#pragma once

#include <viaduct/card.h>
#include <viaduct/drain.h>

#include <array>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "agent/basis/basis.h"
#include "agent/peers/note_backlog.h"
#include "agent/peers/note_rings.h"
#include "agent/peers/parcel_frames.h"
#include "agent/peers/revoked_cards.h"
#include "agent/peers/transfers.h"
#include "agent/session/connection.h"
#include "base/attempt.h"
#include "base/budget.h"
#include "base/net/listener.h"

namespace viaduct::agent {

class PeerImpl;
class Session;

class Peers {
 public:
  using AgentId = std::array<std::uint8_t, 16>;
  Peers(Basis& basis, Transfers& transfers, ParcelFrames& parcels);
  ~Peers();
  Peers(const Peers&) = delete;
  Peers& operator=(const Peers&) = delete;

  Basis& basis() { return basis_; }
  Transfers& transfers() { return transfers_; }
  ParcelFrames& parcels() { return parcels_; }
  Status listen(Deadline until);
  // Peers would refuse a bad hello at each dial, so it is checked here once.
  Status checkHello() const;
  // Leaves all peers. They may still be in one-sided copies from or to memory here: left().
  void close();
  // After close(): a device of this host may use the agent's memory until the function is true.
  void awaitOwn(std::function<bool()> settled);
  // Ok if no peer and no device may still use the memory of the closed agent.
  Status left();
  void leak();  // in a fork()ed child: the peers belong to the parent

  // A part of a round of progress. True: something moved.
  bool readNotes();
  bool recheck();
  bool busy() const { return recheck_ || notes_.madeRoom(); }

  // `mine`: what the peer may reach here.
  Result<std::shared_ptr<PeerImpl>> connect(const Card& card, std::vector<Grant> mine = {});
  Result<std::shared_ptr<PeerImpl>> connectTo(std::string_view host_port);
  // The agent as its own peer, which is ready. Fails if descriptors or memory are short.
  Result<std::shared_ptr<PeerImpl>> self();
  // Whether no ended transfer of the agent with itself touches memory any more; also after close().
  bool selfSettled();
  // The same of the closed agent, also for devices of this host.
  bool closedSettled();
  // Whether no peer and no device may still use released memory.
  bool settled();
  std::shared_ptr<PeerImpl> find(std::string_view name) const;
  const std::vector<std::shared_ptr<PeerImpl>>& all() const { return peers_; }
  Card card() const;
  // A card with this grant, which gets an id.
  Result<Card> card(Grant grant) const;
  // Ends the sessions under this card and all cards narrowed from it, and refuses these cards.
  Status revoke(const CardId& id, std::optional<WallTime> until);
  // Ends the sessions under all cards with a grant, and refuses these cards.
  Status revokeAll();

  // Pins memory of this agent, and announces it to the peers.
  Result<PinInfo> pin(const Segment& memory, std::string label,
                      const core::Audience& audience = core::Audience::everybody());
  // The budget for the pins that all peers together have announced.
  base::Budget& pinsBytes() { return pins_bytes_; }

  // Drains. From beginDrain() to endDrain(), the agent begins nothing new.
  void beginDrain(Clock::time_point until);
  void endDrain();
  bool drains() const { return drain_until_.has_value(); }
  Clock::time_point drainUntil() const { return drain_until_.value_or(Clock::time_point::max()); }
  // The error of a call that would begin something new.
  Error drainError(const char* operation) const;
  // The peers with work that has not ended.
  std::vector<DrainLeft> drainLeft() const;
  bool hasDrainLeft() const;

  // Notes
  void arrived(PeerImpl& from, base::Bytes note);
  std::optional<Note> takeNote();
  bool hasNote() const { return !notes_.empty(); }
  base::Watchers& noteWatchers() { return note_watchers_; }
  NoteRings& noteRings() { return rings_; }
  const NoteRings& noteRings() const { return rings_; }

  // Peers and sessions call the functions below.
  Hello hello(std::uint64_t last_epoch) const;
  const Key& secret() const { return secret_; }
  // The secret of a card of this agent with that claim; none: it is no claim of a card.
  std::optional<Key> secretOf(base::ByteSpan claim) const;
  bool isThisProcess(const Hello& theirs) const;
  bool precedes(const Hello& theirs) const { return basis_.id() < theirs.agent; }
  std::uint64_t newSession() { return ++last_session_; }  // a number for core::PinRights::session()
  // An accepted connection has proved that it knows the secret. Finds or makes its peer and returns
  // the session's life, or an error that refuses the connection.
  Result<Life> admit(Session& session, const Hello& theirs);
  // A peer that was dialed by address has told its name. Merges it with a peer that is known under
  // this name.
  void joinByName(const std::shared_ptr<PeerImpl>& peer, const AgentId& id);
  // `known` takes the place of `peer`, which is the same agent.
  void replace(const std::shared_ptr<PeerImpl>& peer, std::shared_ptr<PeerImpl> known);
  std::unique_ptr<Session> takeNewcomer(Session& session);
  void bury(std::unique_ptr<Session> session);  // destroyed at the end of this round of progress
  // Sends heartbeats to all peers at least this often, since one peer needs it.
  void beatSooner(Duration every);
  // The next round of progress calls recheck() of every peer.
  void recheckSoon() { recheck_ = true; }

 private:
  std::shared_ptr<PeerImpl> add(std::string name, bool own = false);
  Result<std::vector<Grant>> grantsOf(Session& session, const Hello& theirs) const;
  std::shared_ptr<PeerImpl> findOther(std::string_view name) const;
  std::shared_ptr<PeerImpl> findAlive(const Hello& theirs) const;
  static std::shared_ptr<PeerImpl> heirTo(std::shared_ptr<PeerImpl> known, const AgentId& id);
  void accept(base::Fd socket, base::Unproven::Place place);
  void beat();
  void forgetDeparted();
  void scheduleBeat(Clock::time_point now);
  void holdUp(PeerImpl& from);
  void letSendersGoOn();

  Basis& basis_;
  Transfers& transfers_;
  ParcelFrames& parcels_;
  std::array<std::uint8_t, 32> secret_{};
  Key card_root_{};  // the secrets of cards with a grant are derived from it
  RevokedCards revoked_;
  std::unique_ptr<base::Listener> listener_;
  base::Budget pins_bytes_{kMaxPinsBytesOfAll};
  std::vector<std::shared_ptr<PeerImpl>> peers_;
  std::shared_ptr<PeerImpl> self_;  // one of peers_; null before the first self()
  std::uint64_t last_session_ = 0;
  // After close(): peers and devices that may still use memory here, until the function is true.
  struct Unsettled {
    std::string peer;
    bool own = false;  // a device of this host, or the agent's peer to itself
    std::function<bool()> settled;
  };
  static bool isOver(Unsettled& one);
  std::vector<Unsettled> unsettled_;
  std::vector<std::unique_ptr<Session>> newcomers_;  // accepted, not yet admitted to a peer
  std::vector<std::unique_ptr<Session>> graveyard_;
  NoteRings rings_;
  NoteBacklog notes_;
  base::Watchers note_watchers_;
  bool recheck_ = false;
  std::optional<Clock::time_point> drain_until_;
  Duration beat_every_{};
  Clock::time_point last_beat_{};
  base::Poller::Id beat_timer_ = 0;
};

}  // namespace viaduct::agent
