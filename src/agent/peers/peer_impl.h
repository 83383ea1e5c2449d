// One peer: its session, its links, and the pins that it has announced. A life of the session has
// one epoch, and ends when the peer is lost. The agent's own peer has lives without a session
// (docs/design/0052-no-session-with-oneself.md). Threads: under the agent's lock.
#pragma once

#include <viaduct/card.h>
#include <viaduct/peer.h>

#include <array>
#include <atomic>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "agent/basis/pins.h"
#include "agent/peers/announced_pins.h"
#include "agent/peers/note_backlog.h"
#include "agent/peers/peer_leases.h"
#include "agent/peers/peer_marks.h"
#include "agent/peers/peer_states.h"
#include "agent/peers/peers.h"
#include "agent/peers/rail_health.h"
#include "agent/peers/redialer.h"
#include "agent/session/connection.h"
#include "agent/session/frame_rules.h"
#include "agent/session/life_frames.h"
#include "agent/session/messages.h"
#include "agent/session/note_ring.h"
#include "base/attempt.h"
#include "base/net/unproven.h"
#include "core/backend.h"
#include "core/plan.h"

namespace viaduct::agent {

class PeerImpl;

// One connection of a session, from its first byte to its last, and the peer that it belongs to.
class Session final : public ConnectionUser {
 public:
  // Dialed for `peer`. An accepted connection has no peer until it is admitted.
  Session(Peers& peers, std::shared_ptr<PeerImpl> peer)
      : peers_(peers), peer_(std::move(peer)), dialed_(peer_ != nullptr) {}
  // The dialer proves the secret of a card with this claim.
  Status dial(base::Fd socket, const Key& secret, base::Bytes claim, std::uint64_t last_epoch,
              std::optional<Life> resume);
  Status accept(base::Fd socket);

  Connection& connection() { return *connection_; }
  bool dialed() const { return dialed_; }
  void belongsTo(std::shared_ptr<PeerImpl> peer) { peer_ = std::move(peer); }
  // Until leavePlace(), the listener may drop this connection for a newer one.
  void unproven(base::Unproven::Place place);
  void leavePlace() { place_.leave(); }
  // Closes the connection and leaves the peer. The agent destroys this object later.
  void orphan() {
    connection_.reset();
    peer_ = nullptr;
  }

  Result<Life> judge(const Hello& theirs) override;
  void established(std::uint64_t epoch) override;
  void frame(FrameType type, std::span<const std::byte> payload,
             std::vector<base::Fd> fds) override;
  void closed(const Error& why) override;

 private:
  Status open(base::Fd socket, ConnectionConfig config);

  Peers& peers_;
  std::shared_ptr<PeerImpl> peer_;
  const bool dialed_;
  std::unique_ptr<Connection> connection_;
  base::Unproven::Place place_;
};

// The link of one backend to a peer, in the current life.
class LinkSlot final : public core::LinkHost {
 public:
  LinkSlot(PeerImpl& peer, std::size_t backend, std::size_t rails, const base::Poller& clock)
      : health(rails, RailHealth(clock)), peer_(peer), backend_(backend) {}
  Status send(std::span<const std::byte> message, std::span<const int> fds) override;
  void changed() override;

  std::size_t backend() const { return backend_; }
  PeerImpl& peer() const { return peer_; }
  std::unique_ptr<core::Link> link;
  bool was_ready = false;          // the link was ready when the peer became ready
  std::vector<RailHealth> health;  // one for each rail of the backend

 private:
  PeerImpl& peer_;
  const std::size_t backend_;
};

class PeerImpl final : public std::enable_shared_from_this<PeerImpl> {
 public:
  // `own`: the peer is the agent itself.
  PeerImpl(Peers& peers, std::string name, bool own = false);
  ~PeerImpl();

  Redialer& redialer() { return redialer_; }
  void forget();
  // Set if a peer that was dialed by address is a peer that was known already. All calls go to that
  // peer.
  std::shared_ptr<PeerImpl> same_as;

  Basis& basis() { return basis_; }
  Peers& peers() { return peers_; }
  const std::string& name() const { return name_; }
  PeerState state() const { return PeerPhase::kPublic[phase_.now()]; }
  base::Watchers& watchers() { return watchers_; }  // of its state and its pins
  // Wakes the threads and watchers that wait for a change of this peer.
  void changed();
  bool isOwn() const { return own_; }
  // A life has begun, and is not over.
  bool isAlive() const {
    return phase_.now() >= PeerPhase::kAdmitted && phase_.now() <= PeerPhase::kDraining;
  }
  // Ready, or draining: its session carries transfers and notes.
  bool isOpen() const { return phase_.is(PeerPhase::kReady) || phase_.is(PeerPhase::kDraining); }
  std::uint64_t epoch() const { return epoch_; }
  std::uint64_t endedEpoch() const { return ended_epoch_; }
  // The agent's number of the present session, or of the last one.
  std::uint64_t sessionNumber() const { return session_number_; }
  bool settled();
  const std::vector<std::function<bool()>>& unsettled() const { return unsettled_; }
  // Takes the functions of `other`, a peer of the same name, that say whether its memory is
  // settled.
  void takeUnsettled(PeerImpl& other);
  // The peer has no session, nobody wants it dialed, and it can no longer change memory here.
  bool departed();
  Error notReady(const char* operation) const;
  // Ok if both ends of the present session have the feature.
  Status has(Feature feature, const char* operation) const;
  bool hopeless() const { return redialer_.isWrong(); }

  const AnnouncedPins& pins() const { return pins_; }
  std::uint64_t pinGeneration(std::uint32_t slot) const { return pins_.generation(slot); }
  std::uint64_t pinsVersion() const { return pins_.version(); }
  const core::PinMap& pinMap() { return pins_.map(); }
  std::vector<PeerWay> ways() const;
  std::span<const std::unique_ptr<LinkSlot>> links() const { return links_; }
  // Adds the links of a ready peer to their backends' counts.
  void addTo(std::span<LinkStatistics> backends) const;

  // Drains: in peer_drain.cc. The peer is about to leave, or has left after a drain.
  bool drains() const;
  // No new work with it may begin: it drains, or this agent does.
  bool refusesNew() const { return phase_.is(PeerPhase::kDraining) || peers_.drains(); }
  Error drainError(const char* operation) const;
  // This agent has begun to drain, or its drain was cancelled.
  void announceDrain();
  DrainLeft drainLeft();
  static bool isLeft(const DrainLeft& left);
  // These two count the posts that have copied bytes in a section (move/sections.h) and have not
  // ended, so that a drain sees them. beginHalfway() needs no lock.
  void beginHalfway() { halfway_.fetch_add(1, std::memory_order_relaxed); }
  void endHalfway();
  void postEnded();  // a post has ended; tells the peer if the peer drains
  // A successor has this draining peer's name. The peer's session goes on under this handle.
  void giveUpName();
  bool hasName(std::string_view name) const { return name_ == name && !gave_up_name_; }
  // Another card is known for the name, so the last refusal counts no more.
  void forgetDrained();

  // The grants of the peer's card here, in the present session; empty: the card grants all.
  const std::vector<Grant>& grants() const { return grants_; }
  const core::PinRights& rights() const { return *rights_; }
  // Ends a session whose card is void, with that reason at both ends.
  void endUnderCard(Error why);

  PeerLeases& leases() { return leases_; }
  const std::array<std::uint8_t, 16>& theirId() const;  // only while the peer is alive
  // Sends a frame that keeps the two ends consistent, or ends the session.
  void tell(FrameType type, std::span<const std::byte> payload) {
    if (isAlive()) sendOrLose(type, payload);
  }
  // Each is like tell() for one type of frame, but uses the ring of notes if the ring takes the
  // frame.
  void tellReturned(std::span<const std::byte> payload);
  void tellParcel(std::span<const std::byte> payload);
  void readNow();  // takes frames that have arrived; not within a callback

  Status note(std::span<const std::byte> bytes);
  // Keeps the note for a peer that is not ready yet.
  Status noteOnceReady(std::span<const std::byte> bytes, Clock::time_point until);
  void takeKeptNotes(PeerImpl& other);  // of a peer that turned out to be this one
  // The next three use the ring of notes from this peer. NoteRings calls them for listed rings, and
  // the handler of the ring's eventfd calls takeNotes().
  bool takeNotes();  // true: there was one
  RingReceiver::Next armNoteRing();
  void disarmNoteRing();
  // Marks: in peer_marks.cc.
  Status mark(const Mark& mark);
  Status mayMark(const Mark& mark) const;
  // A stream of that number is open here and has not ended.
  bool hasMarks(std::uint64_t stream) const;
  Result<std::shared_ptr<MarkStreamImpl>> openMarks(MarkStreamOptions options);
  void endMarks(MarkStreamImpl& stream, Error why);
  // False once it is closed, or the session in which it was opened is over.
  bool holdsMarks(const MarkStreamImpl& stream) const {
    return marks_.find(stream.number()) == &stream;
  }
  void closeMarks(MarkStreamImpl& stream);
  std::size_t earlyMarkBytes() const { return marks_.earlyBytes(); }
  void announce(const PinEntry& pin);
  void withdraw(const PinEntry& pin);
  Status sendBackend(std::size_t backend, std::span<const std::byte> message,
                     std::span<const int> fds);
  // Stops or resumes reading from this peer. The agent pauses a peer while that peer's waiting
  // notes, or all peers' notes, exceed the limit.
  void pauseReading(bool paused);
  bool readingPaused() const { return paused_; }
  const NoteBacklog::SenderPtr& noteSender() const { return note_sender_; }
  void noteDropped();

  // Its sessions call the functions below.
  Result<Life> judgeDialed(Session& session, const Hello& theirs);
  Result<Life> judgeAccepted(Session& session, const Hello& theirs, std::vector<Grant> grants);
  Result<Life> judgeResume(Session& session, const Hello& theirs, std::span<const Grant> grants);
  void established(Session& session, std::uint64_t epoch);
  void frame(FrameType type, std::span<const std::byte> payload, std::vector<base::Fd> fds);
  void closed(Session& session, const Error& why);

  // Its redialer calls the functions below.
  std::optional<Life> lifeToContinue();  // the life that the next connection shall resume
  void unreached(const Error& why);

  void linkChanged();  // asks for recheck() in the agent's next round of progress

  // The agent calls the functions below.
  Status beginOwn();  // for the agent's own peer; without effect while that is alive
  void recheck();
  void beat(Clock::time_point now, bool judge_silence);
  // Ends this life. Its running transfers fail with `why`.
  void lose(const Error& why);
  Duration beatEvery() const;

 private:
  void begin(std::uint64_t epoch);
  // In peer_grants.cc: what the peer may reach here.
  void beginRights();
  void grant(const PinEntry& pin);
  void tellPin(const PinEntry& pin);
  bool mayReplace(std::span<const Grant> grants) const;
  void endInTime();
  void heardBye(std::span<const std::byte> payload);
  void openLinks();
  // The facts for a link; none if the backend gets no link.
  static std::optional<core::LinkSeed> ownSeed(const core::Backend& backend);
  std::optional<core::LinkSeed> seedFor(core::Backend& backend) const;
  void closeLinks(const Error& why);
  // False: a backend of one host cannot reach another host, or the card keeps the backend out.
  bool shouldReach(const core::Capabilities& can) const;
  void warnOfUnusableLinks();
  std::optional<Error> exhausted() const;
  void loseIfLinkBroke();
  Status mayTake(FrameType type, std::size_t bytes);
  void handle(FrameType type, std::span<const std::byte> payload, std::vector<base::Fd> fds);
  void heardLease(FrameType type, std::span<const std::byte> payload);
  void heardParcel(std::span<const std::byte> payload);
  void tellThroughRing(FrameType type, RingPage::EntryKind kind,
                       std::span<const std::byte> payload);
  void heardDraining(std::span<const std::byte> payload);
  void heardDrainLeft(std::span<const std::byte> payload);
  Error leftError() const;
  void followDrain();  // makes the phase kDraining while one of the two ends drains
  Transfers::RunningTransfers running();
  void tellLeft();
  void addPin(std::span<const std::byte> payload);
  void dropPin(std::span<const std::byte> payload);
  void backendFrame(std::span<const std::byte> payload, std::vector<base::Fd> fds);
  void openRing();
  void closeRing();
  void heardOfRing(std::vector<base::Fd> fds);
  void takeNotesBefore(std::uint64_t frames);
  void sendKeptNotes();
  void dropKeptNotes(Clock::time_point now);
  bool takeNote(RingReceiver& ring, std::uint64_t frames);
  void heardMark(std::span<const std::byte> payload);
  void heardMarksEnd(std::span<const std::byte> payload);
  void sendMarksEnd(std::uint64_t stream, const Error& why);
  void marksDropped();
  void loseMarks(const Error& why);
  void marksChanged(MarkStreamImpl& stream);
  void breakOff(Error why);
  Status send(FrameType type, std::span<const std::byte> head, std::span<const std::byte> body = {},
              std::span<const int> fds = {});
  Status hearOwn(FrameType type, std::span<const std::byte> payload);
  void sendOrLose(FrameType type, std::span<const std::byte> payload);
  void notSent(Error why);
  // In peer_resume.cc: a session continues over another connection.
  bool seemsCut();
  void reachAnotherWay();
  void resumed(Session& session, std::uint64_t they_heard);
  std::uint64_t heard() const;
  bool isRepeated(std::size_t bytes);
  void sayHeard();
  void takeHeartbeat(std::span<const std::byte> heartbeat);
  Clock::time_point lastHeard(Clock::time_point now);

  const std::shared_ptr<Basis> owner_;  // no leak: the agent drops its peers when it closes
  Basis& basis_;
  Peers& peers_;
  std::string name_;
  const bool own_;
  base::Machine<PeerPhase> phase_;
  Redialer redialer_;
  std::atomic<std::uint64_t> epoch_{0};
  std::uint64_t ended_epoch_ = 0, session_number_ = 0;
  std::uint64_t features_ = 0;  // of both ends of the present session
  std::optional<Error> last_error_;
  // Notes that are sent once the peer is ready, unless their time passes before.
  struct KeptNote {
    base::Bytes bytes;
    Clock::time_point until;
  };
  std::vector<KeptNote> kept_notes_;
  std::size_t kept_bytes_ = 0;
  base::Watchers watchers_;
  // This end lacked descriptors or memory for recent sessions, so the next session has to wait.
  Duration exhausted_wait_{};
  Clock::time_point refuses_until_{};
  // The agent that was lost because it was silent. Until `until` no other agent gets its name.
  struct Silent {
    std::array<std::uint8_t, 16> agent = {};
    Clock::time_point until = {};
  };
  std::optional<Silent> silent_;

  // The state of the current life.
  std::unique_ptr<Session> session_;
  base::Machine<Ending> ending_;
  Error ending_why_;  // while kCut or kBroken
  Key life_key_ = {};
  SentFrames sent_;
  HeardFrames heard_;
  FrameOrder order_;  // of the received frames
  // The count of received frames that the pending attempt to resume the session has told the peer.
  std::uint64_t said_heard_ = 0;
  std::size_t unsaid_ = 0;  // bytes received since the peer was last told the count
  // Bytes that the peer's host had acknowledged before the last heartbeat.
  std::optional<std::uint64_t> acknowledged_;
  bool recheck_ = false;
  bool paused_ = false, note_dropped_ = false, marks_dropped_ = false;
  std::vector<std::unique_ptr<LinkSlot>> links_;
  // For earlier lives: whether the peer can no longer change memory here.
  std::vector<std::function<bool()>> unsettled_;
  std::optional<RingReceiver> ring_in_;  // on one host only: rings of notes from the peer and to it
  std::optional<RingSender> ring_out_;
  base::Poller::Id ring_bell_ = 0;
  Clock::time_point beaten_at_{};  // when a heartbeat was last found in the ring
  NoteBacklog::SenderPtr note_sender_ = std::make_shared<NoteBacklog::Sender>();
  base::Bytes ring_entry_;  // the last one taken from the ring; a note moves its memory out
  // The announcements of drains in this session: odd while that end drains.
  std::uint32_t own_drain_ = 0, their_drain_ = 0;
  // The last figures that this end told a draining peer, and that it heard during its own drain.
  std::optional<DrainLeftMessage> told_left_, heard_left_;
  std::atomic<std::uint32_t> halfway_{0};  // see beginHalfway()
  bool gave_up_name_ = false;
  PeerMarks marks_;
  AnnouncedPins pins_;
  std::vector<Grant> grants_;
  std::shared_ptr<core::PinRights> rights_ = std::make_shared<core::PinRights>();
  base::Poller::Id end_timer_ = 0;  // of the grants
  std::optional<Error> goodbye_;    // the reason that the peer gave
  PeerLeases leases_;
  base::Bytes scratch_;
};

}  // namespace viaduct::agent
